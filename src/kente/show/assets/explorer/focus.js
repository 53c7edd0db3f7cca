// ---- The one map in focus: drawn large, told by pointer, finger or arrow keys.

// The table that a panel shows now; null where its model has none of this kind.
function tableOf(panel) {
  const { reading } = panel;
  if (state.kind === WITHOUT) return reading.occlusion && occlusionTable(reading, state.joined);
  const maps = mapsOf(reading, state.kind);
  return maps ? attentionTable(reading, maps, panel, state.joined) : null;
}

function drawFocus(panel) {
  const table = tableOf(panel);
  panel.table = table;
  panel.tools.hidden = !table;
  if (!table) {
    explainAbsence(panel);
    return;
  }
  const maps = mapsOf(panel.reading, state.kind);
  const habits = maps ? habitText(maps, panel) : "";
  panel.caption.replaceChildren(table.title, ...(habits ? [make("small", {}, habits)] : []));
  const view = state.lines ? lineView : heatMap;
  const svg = view(table, strengths(table, state.strongest), { known: state.known, step: panel.step });
  svg.setAttribute("aria-label", `${panel.reading.name}: ${table.title}. ${mostOf(table)}`);
  panel.stage.replaceChildren(svg);
  panel.rest = restingWords();
  panel.readout.textContent = panel.rest;
  if (state.lines) followLines(panel, svg);
  else followCells(panel, svg);
}

function restingWords() {
  if (state.lines) return "on the left what looks, on the right what is looked at";
  if (state.kind === WITHOUT) return "stronger colour: without the column's word, the row's is less likely";
  return "a row looks at its columns; stronger colour is more weight";
}

function explainAbsence(panel) {
  const { absent, vector } = panel.reading;
  const parts = [make("p", { class: "reason" }, absent[state.kind] || "There is no such map.")];
  if (vector.length) {
    const words = `These ${vector.length} values are all that the decoder is told of the source.`;
    parts.push(vectorView(vector), make("p", { class: "note" }, words));
  }
  panel.caption.textContent = "no map";
  panel.stage.replaceChildren(...parts);
  panel.readout.replaceChildren();
}

// Where each row is strongest, in words, for those who cannot see it.
function mostOf(table) {
  const width = table.columns.length;
  return table.rows.map((label, row) => {
    const line = [...table.values.subarray(row * width, (row + 1) * width)];
    return `${label} to ${table.columns[line.indexOf(Math.max(...line))]}`;
  }).join(", ");
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function followCells(panel, svg) {
  const { table } = panel;
  const cursor = svg.querySelector(".cursor");
  const width = table.columns.length;
  let at = [0, 0]; // row and column as they stand on the screen
  function show(row, across) {
    if (row < 0 || across < 0 || row >= table.rows.length || across >= width) return;
    at = [row, across];
    const column = table.mirrored ? width - 1 - across : across;
    cursor.setAttribute("x", CELL * across);
    cursor.setAttribute("y", CELL * row);
    cursor.setAttribute("visibility", "visible");
    for (const label of svg.querySelectorAll("[data-row], [data-column]")) {
      label.classList.toggle("on", Number(label.dataset.row) === row || Number(label.dataset.column) === column);
    }
    panel.readout.replaceChildren(...table.tell(row, column));
  }
  function leave() {
    cursor.setAttribute("visibility", "hidden");
    for (const label of svg.querySelectorAll(".on")) label.classList.remove("on");
    panel.readout.textContent = panel.rest;
  }
  function point(event) {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(cursor.parentNode.getScreenCTM().inverse());
    show(Math.floor(place.y / CELL), Math.floor(place.x / CELL));
  }
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
  svg.addEventListener("blur", leave);
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && show(...at));
  svg.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    show(at[0] + step[0], at[1] + step[1]);
  });
}

// In the line view one word at a time: its lines stay, the others fade, and the strongest are told.
function followLines(panel, svg) {
  const { table } = panel;
  const labels = [...svg.querySelectorAll(".rows text")];
  let at = -1;
  function show(row) {
    at = row;
    svg.classList.toggle("one", row >= 0);
    for (const part of svg.querySelectorAll("[data-row]")) part.classList.toggle("on", Number(part.dataset.row) === row);
    if (row < 0) {
      panel.readout.textContent = panel.rest;
      return;
    }
    const width = table.columns.length;
    const worth = (column) => table.values[row * width + column];
    const best = upTo(width).sort((one, other) => worth(other) - worth(one)).slice(0, 3);
    panel.readout.replaceChildren(...best.flatMap((column, place) => [place ? "; " : "", ...table.tell(row, column)]));
  }
  labels.forEach((label, row) => {
    label.addEventListener("pointerenter", () => show(row));
    label.addEventListener("pointerdown", () => show(row));
  });
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && show(-1));
  svg.addEventListener("blur", () => show(-1));
  svg.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step || !step[0]) return;
    event.preventDefault();
    show(Math.min(labels.length - 1, Math.max(0, at + step[0])));
  });
}
