"use strict";
// What a page can do beyond being read: hide lines, sort tables, point at weights. Nothing here is needed to read it.
(() => {
  document.body.classList.add("live");

  function toggleLine(key) {
    const shown = key.getAttribute("aria-pressed") !== "true";
    key.setAttribute("aria-pressed", String(shown));
    const lines = key.closest("figure").querySelectorAll(`.drawing [data-series="${key.dataset.series}"]`);
    for (const line of lines) line.classList.toggle("off", !shown);
  }
  for (const key of document.querySelectorAll(".key")) key.addEventListener("click", () => toggleLine(key));

  // A cell is worth its data-worth, a number where it reads as one; what has no worth comes last either way.
  function worth(row, column) {
    const cell = row.cells[column];
    const text = (cell.dataset.worth ?? cell.textContent).trim();
    if (text === "") return null;
    const number = Number(text.replaceAll(",", "").replace("−", "-"));
    return Number.isNaN(number) ? text : number;
  }
  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other));
  }
  function sort(table, head, column) {
    const numeric = head.classList.contains("number");
    const before = head.getAttribute("aria-sort");
    const ascending = before ? before === "descending" : !numeric; // of numbers one wants the largest first
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].map((row) => [worth(row, column), row]);
    rows.sort(([one], [other]) => {
      if (one === null || other === null) return (one === null) - (other === null);
      return ascending ? compare(one, other) : compare(other, one);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, column));
    });
  }

  // A map of weights: point, tap, or move with the arrow keys.
  function piece(label) {
    return (label.querySelector("title") ?? label).textContent;
  }
  function isolated(text) {
    const part = document.createElement("bdi");
    part.textContent = text;
    return part;
  }
  function prepare(map) {
    const cursor = map.querySelector(".cursor");
    const readout = map.closest("figure").querySelector(".readout");
    const rest = readout.textContent;
    const rows = [...map.querySelectorAll(".rows text")];
    const columns = [...map.querySelectorAll(".columns text")];
    const weights = map.dataset.weights.split(";").map((row) => row.split(","));
    const size = Number(cursor.getAttribute("width"));
    let at = [0, 0];
    function show(row, column) {
      if (row < 0 || column < 0 || row >= rows.length || column >= columns.length) return;
      at = [row, column];
      const share = weights[row][column];
      cursor.setAttribute("x", column * size);
      cursor.setAttribute("y", row * size);
      cursor.setAttribute("visibility", "visible");
      const number = share === "" ? "no weight" : (Number(share) / 1000).toFixed(3);
      readout.replaceChildren(isolated(piece(rows[row])), " looks at ", isolated(piece(columns[column])), `: ${number}`);
    }
    function leave() {
      cursor.setAttribute("visibility", "hidden");
      readout.textContent = rest;
    }
    function point(event) {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(cursor.parentNode.getScreenCTM().inverse());
      show(Math.floor(place.y / size), Math.floor(place.x / size));
    }
    map.addEventListener("pointermove", point);
    map.addEventListener("pointerdown", point);
    map.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
    map.addEventListener("blur", leave);
    map.addEventListener("focus", () => map.matches(":focus-visible") && show(...at));
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    map.addEventListener("keydown", (event) => {
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      show(at[0] + step[0], at[1] + step[1]);
    });
  }
  for (const map of document.querySelectorAll(".weights")) prepare(map);

  // Numbers embedded in the page, saved as a file without asking anyone for it.
  for (const link of document.querySelectorAll("a[data-numbers]")) {
    const numbers = document.getElementById(link.dataset.numbers).textContent;
    link.href = URL.createObjectURL(new Blob([numbers], { type: "application/json" }));
    link.hidden = false;
  }
})();
