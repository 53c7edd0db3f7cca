// ---- Pictures: a heat map, lines between two columns, a thumbnail. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const CELL = 22;
const LEVELS = 25;
const LONGEST = 14;
const FAINT = 0.02; // lines below this weight are left out
const FONT = '13px system-ui, "Noto Sans", "DejaVu Sans", "Liberation Sans", sans-serif';
const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}
function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}
function isolated(text) {
  return make("bdi", {}, text);
}

const letters = window.Intl && Intl.Segmenter ? new Intl.Segmenter() : null;
function cut(text) {
  const parts = letters ? [...letters.segment(text)].map((part) => part.segment) : [...text];
  return parts.length > LONGEST ? `${parts.slice(0, LONGEST - 1).join("")}…` : text;
}
function breadth(labels) {
  return Math.max(8, ...labels.map((label) => pen.measureText(cut(label)).width));
}
function word(label, attributes) {
  const text = draw("text", attributes, cut(label));
  if (cut(label) !== label) text.append(draw("title", {}, label));
  return text;
}

// A row to what looks, a column to what is looked at, stronger where more of the weight lies. Columns run as their words are read.
function heatMap(table, shares, { known, step }) {
  const { rows, columns } = table;
  const across = columns.length * CELL;
  const down = rows.length * CELL;
  const left = breadth(rows) + 12;
  const lean = 0.72 * breadth(columns) + 6; // what a label that is turned by 45 degrees needs, up and across
  const head = lean + 10;
  const place = (column) => (table.mirrored ? columns.length - 1 - column : column);
  const field = draw("g", { transform: `translate(${left} ${head})`, class: "field" }, ...axes(table, place));
  field.append(draw("rect", { class: "ground", width: across, height: down }));
  const cells = draw("g", { class: "cells", transform: `scale(${CELL}) translate(0 .5)` });
  levels(shares, rows.length, columns.length, place).forEach((path, level) => {
    if (path) cells.append(draw("path", { opacity: level / LEVELS, d: path }));
  });
  const threads = [
    ...upTo(rows.length + 1).map((row) => `M0 ${CELL * row}h${across}`),
    ...upTo(columns.length + 1).map((column) => `M${CELL * column} 0v${down}`),
  ];
  field.append(cells, draw("path", { class: "threads", d: threads.join("") }));
  if (known && table.links.size) field.append(rings(table, place));
  if (table.stepwise && step !== null) field.append(...progress(table, step, across, left));
  field.append(draw("rect", { class: "cursor", width: CELL, height: CELL, visibility: "hidden" }));
  return picture("weights", left + across + Math.max(lean - CELL / 2, 4), head + down + 3, field);
}

function axes({ rows, columns }, place) {
  const beside = rows.map((label, row) => word(label, { x: -6, y: CELL * (row + 0.5), "data-row": row }));
  const above = columns.map((label, column) => {
    const turned = `translate(${CELL * (place(column) + 0.5) + 1} -7) rotate(-45)`;
    return word(label, { transform: turned, "data-column": column });
  });
  return [draw("g", { class: "rows" }, ...beside), draw("g", { class: "columns" }, ...above)];
}

// Around cells of words known to translate each other.
function rings(table, place) {
  const width = table.columns.length;
  const paths = [...table.links].map((at) => {
    const row = Math.floor(at / width);
    return `M${CELL * place(at % width) + 4} ${CELL * row + 4}h14v14h-14z`;
  });
  return draw("path", { class: "known", d: paths.join("") });
}

// The row being written, and a veil over those that are not written yet.
function progress(table, step, across, left) {
  const row = holding(table.spans, step);
  const rest = table.rows.length - row - 1;
  const width = across + left;
  return [
    draw("rect", { class: "unwritten", x: -left, y: CELL * (row + 1), width, height: CELL * rest }),
    draw("rect", { class: "writing", x: 2 - left, y: CELL * row, width: width - 2, height: CELL }),
  ];
}

// Strokes one unit thick, one path to a level of colour: a page of single cells would be slow.
function levels(shares, rows, columns, place) {
  const paths = Array(LEVELS + 1).fill("");
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const level = Math.ceil(shares[row * columns + column] * LEVELS - 0.02);
      if (level > 0) paths[level] += `M${place(column)} ${row}h1`;
    }
  }
  return paths;
}

function picture(kind, width, height, ...parts) {
  const size = { width: Math.ceil(width), height: Math.ceil(height) };
  const style = `max-width:${Math.round(1.25 * width)}px;min-width:${Math.round(0.75 * width)}px`;
  const viewBox = `0 0 ${size.width} ${size.height}`;
  return draw("svg", { class: kind, viewBox, ...size, style, tabindex: 0, role: "img" }, ...parts);
}

// What looks on the left, what is looked at on the right, and a line between them as strong as the weight.
function lineView(table, shares, { known, step }) {
  const { rows, columns } = table;
  const pitch = CELL + 2;
  const reach = 190;
  const left = breadth(rows) + 14;
  const height = pitch * Math.max(rows.length, columns.length) + 8;
  const first = (count) => (height - pitch * (count - 1)) / 2;
  const from = rows.map((_, row) => first(rows.length) + pitch * row);
  const to = columns.map((_, column) => first(columns.length) + pitch * column);
  const now = table.stepwise && step !== null ? holding(table.spans, step) : rows.length - 1;
  const lines = draw("g", { class: "lines" });
  shares.forEach((share, at) => {
    const row = Math.floor(at / columns.length);
    const linked = known && table.links.has(at);
    if (row > now || (share < FAINT && !linked)) return;
    const [start, end] = [from[row], to[at % columns.length]];
    const d = `M0 ${start}C${reach / 2} ${start} ${reach / 2} ${end} ${reach} ${end}`;
    const strength = { opacity: Math.max(0.05, share).toFixed(2), "stroke-width": (0.6 + 4.4 * share).toFixed(1) };
    if (linked) lines.append(draw("path", { class: "linked", d, "data-row": row }));
    lines.append(draw("path", { d, ...strength, "data-row": row }));
  });
  const looking = rows.map((label, row) => {
    return word(label, { x: -8, y: from[row], "data-row": row, class: row > now ? "later" : null });
  });
  const seen = columns.map((label, column) => word(label, { x: reach + 8, y: to[column], "data-column": column }));
  const field = draw("g", { transform: `translate(${left} 0)`, class: "field" }, lines);
  field.append(draw("g", { class: "rows" }, ...looking), draw("g", { class: "seen" }, ...seen));
  return picture("lineview", left + reach + breadth(columns) + 14, height, field);
}

// One pixel to a cell; the style makes it larger.
function thumbnail(canvas, table, shares, [red, green, blue]) {
  const { rows, columns } = table;
  canvas.width = columns.length;
  canvas.height = rows.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns.length, rows.length);
  shares.forEach((share, at) => {
    const column = at % columns.length;
    const x = table.mirrored ? columns.length - 1 - column : column;
    image.data.set([red, green, blue, Math.round(255 * share)], 4 * (at - column + x));
  });
  context.putImageData(image, 0, 0);
}

// The colour of weights as the page has it now.
function ink() {
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--weight").trim();
  return [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
}

// All that a fixed-context decoder knows of the source: a bar to a value, up or down.
function vectorView(vector) {
  const most = Math.max(...vector.map(Math.abs)) || 1;
  const across = 64;
  const bars = vector.map((value, place) => {
    const middle = 44 * Math.floor(place / across) + 22;
    return `M${5 * (place % across) + 2.5} ${middle}v${((-20 * value) / most).toFixed(1)}`;
  });
  const height = 44 * Math.ceil(vector.length / across);
  const svg = picture("vector", 5 * Math.min(vector.length, across), height, draw("path", { d: bars.join("") }));
  svg.setAttribute("aria-label", `${vector.length} values between ${(-most).toFixed(2)} and ${most.toFixed(2)}`);
  return svg;
}
