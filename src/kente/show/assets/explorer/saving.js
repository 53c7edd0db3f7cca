// ---- What a reader can take home: the picture as SVG or PNG, the numbers as CSV. Nothing leaves the page but into a file.

// Pictures for paper are light, whatever the screen is.
const PAPER = `text{font:${FONT};fill:#1e1b16;dominant-baseline:central;unicode-bidi:plaintext}.rows{text-anchor:end}.ground{fill:#fff}`
  + ".cells{stroke:#0d5a8c;fill:none}.threads{stroke:#e6dfd1;fill:none}.cursor{display:none}.known{fill:none;stroke:#c94f00;stroke-width:2}"
  + ".unwritten{fill:#fff;opacity:.8}.writing{fill:none;stroke:#1e1b16;stroke-width:1.5}.lines{stroke:#0d5a8c;fill:none}"
  + ".lines .linked{stroke:#c94f00;stroke-width:1.2;stroke-dasharray:3 3}.later{opacity:.3}";
const SHARPNESS = 2;

function paperPicture(panel) {
  const svg = panel.stage.querySelector("svg").cloneNode(true);
  for (const name of ["style", "tabindex", "role", "class"]) svg.removeAttribute(name);
  for (const part of svg.querySelectorAll(".on")) part.classList.remove("on");
  svg.prepend(draw("style", {}, PAPER), draw("rect", { width: "100%", height: "100%", fill: "#fff" }));
  return new XMLSerializer().serializeToString(svg);
}

function save(name, type, content) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName(panel, ending) {
  const words = `${panel.reading.name} ${panel.table.title}`.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80);
  return `${words.replace(/^-|-$/g, "")}.${ending}`;
}

function saveSvg(panel) {
  save(fileName(panel, "svg"), "image/svg+xml", paperPicture(panel));
}

function savePng(panel) {
  const svg = panel.stage.querySelector("svg");
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = make("canvas", { width: SHARPNESS * svg.getAttribute("width"), height: SHARPNESS * svg.getAttribute("height") });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(fileName(panel, "png"), "image/png", blob));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(paperPicture(panel))}`;
}

function quoted(text) {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function saveCsv(panel) {
  const { table } = panel;
  const lines = ["model,map,row,row_text,column,column_text,weight"];
  table.rows.forEach((row, i) => table.columns.forEach((column, j) => {
    const value = table.values[i * table.columns.length + j].toFixed(4);
    lines.push([panel.reading.name, table.title, i + 1, row, j + 1, column, value].map((cell) => quoted(String(cell))).join(","));
  }));
  save(fileName(panel, "csv"), "text/csv", `${lines.join("\n")}\n`);
}

function makeTools(panel) {
  const button = (words, act) => make("button", { type: "button", onclick: () => act(panel) }, words);
  return make("div", { class: "tools" }, "save ", button("SVG", saveSvg), button("PNG", savePng), button("CSV", saveCsv));
}
