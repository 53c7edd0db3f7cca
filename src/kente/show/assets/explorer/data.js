// ---- What the page holds, and the tables made of it.
// A table is one map ready to be shown: values[row * columns.length + column], with a label to each row and column.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const WORTH = new Uint8Array(128);
for (let place = 0; place < LETTERS.length; place += 1) WORTH[LETTERS.charCodeAt(place)] = place;
const WITHOUT = "without";
const HABITS = ["entropy", "distance", "looks back"];

const explored = JSON.parse(document.getElementById("explored").textContent);

// Two letters to a number from 0 to 1.
function unpacked(text) {
  const values = new Float32Array(text.length / 2);
  for (let place = 0; place < values.length; place += 1) {
    values[place] = (64 * WORTH[text.charCodeAt(2 * place)] + WORTH[text.charCodeAt(2 * place + 1)]) / 4095;
  }
  return values;
}

for (const reading of explored.readings) {
  for (const maps of reading.maps) {
    maps.size = reading.sides[maps.rows].pieces.length * reading.sides[maps.columns].pieces.length;
    maps.weights = unpacked(maps.weights);
    maps.rollout = maps.rollout && unpacked(maps.rollout);
  }
  if (reading.occlusion) reading.occlusion.without = unpacked(reading.occlusion.without);
}

function upTo(count) {
  return [...Array(count).keys()];
}

function mapsOf(reading, kind) {
  return reading.maps.find((maps) => maps.kind === kind);
}

// One map of pieces: a head, or what the heads of a layer (or of all layers) see on average or at most, or the rollout.
function weightsOf(maps, { layer, head }) {
  if (head === "rollout") {
    const place = layer === "all" ? maps.layers - 1 : layer;
    return maps.rollout.subarray(place * maps.size, (place + 1) * maps.size);
  }
  const layers = layer === "all" ? upTo(maps.layers) : [layer];
  const heads = typeof head === "number" ? [head] : upTo(maps.heads);
  const share = 1 / (layers.length * heads.length);
  const found = new Float32Array(maps.size);
  for (const one of layers) {
    for (const other of heads) {
      const begin = (one * maps.heads + other) * maps.size;
      for (let place = 0; place < maps.size; place += 1) {
        const weight = maps.weights[begin + place];
        found[place] = head === "max" ? Math.max(found[place], weight) : found[place] + share * weight;
      }
    }
  }
  return found;
}

// Labels of a side and the pieces each stands for, from the first up to, not including, the last.
function labelled(side, joined) {
  return joined ? side.words : side.pieces.map((piece, place) => [piece, place, place + 1]);
}

// A word looks as its pieces do on average, and is looked at as much as they are together.
function gathered(weights, width, rows, columns) {
  const values = new Float32Array(rows.length * columns.length);
  rows.forEach(([, top, bottom], row) => {
    columns.forEach(([, left, right], column) => {
      let sum = 0;
      for (let y = top; y < bottom; y += 1) {
        for (let x = left; x < right; x += 1) sum += weights[y * width + x];
      }
      values[row * columns.length + column] = sum / (bottom - top);
    });
  });
  return values;
}

function titleOf(maps, { layer, head }) {
  if (head === "rollout") return `rollout up to layer ${layer === "all" ? maps.layers : layer + 1}`;
  const where = layer === "all" ? "all layers" : `layer ${layer + 1} of ${maps.layers}`;
  if (typeof head === "number") return maps.heads > 1 ? `${where}, head ${head + 1} of ${maps.heads}` : where;
  return maps.heads > 1 ? `${where}, ${head} of ${maps.heads} heads` : layer === "all" ? `${where}, ${head}` : where;
}

function attentionTable(reading, maps, choice, joined) {
  const side = reading.sides[maps.columns];
  const rows = labelled(reading.sides[maps.rows], joined);
  const columns = labelled(side, joined);
  const values = gathered(weightsOf(maps, choice), side.pieces.length, rows, columns);
  const linked = maps.kind === "cross" ? reading.links : [];
  return {
    title: `${explored.kinds[maps.kind].title}, ${titleOf(maps, choice)}`,
    rows: rows.map(([label]) => label),
    columns: columns.map(([label]) => label),
    spans: rows,
    values,
    mirrored: side.mirrored,
    stepwise: explored.kinds[maps.kind].stepwise,
    links: new Set(linked.map(([row, piece]) => holding(rows, row) * columns.length + holding(columns, piece))),
    tell: (row, column) => {
      const weight = values[row * columns.length + column].toFixed(3);
      return [isolated(rows[row][0]), " looks at ", isolated(columns[column][0]), `: ${weight}`];
    },
  };
}

// Which of the labels stands for this piece.
function holding(labels, piece) {
  return labels.findIndex(([, begin, end]) => begin <= piece && piece < end);
}

// How much less likely what was written becomes when a word of the source is left out. A word is as likely as its pieces together.
function occlusionTable(reading, joined) {
  const { words, without, instead } = reading.occlusion;
  const rows = labelled(reading.sides.written, joined);
  const length = reading.steps.length;
  const before = rows.map(([, begin, end]) => product(reading.steps.slice(begin, end).map((step) => step.p)));
  const after = (row, column) => {
    const [, begin, end] = rows[row];
    return product(without.subarray(column * length + begin, column * length + end));
  };
  const falls = rows.flatMap((_, row) => words.map((_word, column) => before[row] - after(row, column)));
  const values = Float32Array.from(falls);
  return {
    title: "without a word of the source: how far the probability of what was written falls",
    rows: rows.map(([label]) => label),
    columns: words,
    spans: rows,
    values,
    mirrored: reading.sides.source.mirrored,
    stepwise: true,
    links: new Set(),
    tell: (row, column) => {
      const change = values[row * words.length + column];
      const way = Math.abs(change) < 0.0005 ? "stays at" : change > 0 ? "falls to" : "rises to";
      const numbers = `: ${before[row].toFixed(3)} ${way} ${after(row, column).toFixed(3)}. It would write: `;
      const left = ["without ", isolated(words[column]), ", the probability of ", isolated(rows[row][0])];
      return [...left, numbers, isolated(instead[column] || "nothing")];
    },
  };
}

function product(numbers) {
  return numbers.reduce((total, number) => total * number, 1);
}

// How strong each value is drawn, from 0 to 1: as it is, or beside the strongest of all. What falls below nothing is not drawn.
function strengths(table, strongest) {
  const most = strongest ? table.values.reduce((a, b) => Math.max(a, b), 0) || 1 : 1;
  return table.values.map((value) => Math.min(1, Math.max(0, value / most)));
}
