// ---- The grid of small maps: a row to a layer, a column to a head; or all heads in the order of a habit.

function habitText(maps, { layer, head }) {
  if (typeof head !== "number" || layer === "all") return "";
  const [entropy, distance, back] = HABITS.map((name) => maps.habits[name][layer][head]);
  return `entropy ${entropy.toFixed(2)} bits · distance ${distance.toFixed(1)} · looks back ${Math.round(100 * back)} %`;
}

// Every choice there is, in rows: the heads of each layer with what they see together, then all layers.
function choices(maps) {
  const together = [...(maps.heads > 1 ? ["mean", "max"] : []), ...(maps.rollout ? ["rollout"] : [])];
  const rows = upTo(maps.layers).map((layer) => [...upTo(maps.heads), ...together].map((head) => ({ layer, head })));
  if (maps.layers > 1) rows.push(["mean", "max"].map((head) => ({ layer: "all", head })));
  return rows;
}

function inOrder(maps, habit) {
  const heads = choices(maps).flat().filter(({ layer, head }) => layer !== "all" && typeof head === "number");
  const worth = ({ layer, head }) => maps.habits[habit][layer][head];
  return heads.sort((one, other) => worth(one) - worth(other));
}

function thumb(panel, maps, choice, caption) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const table = attentionTable(panel.reading, maps, choice, state.joined);
  const words = [titleOf(maps, choice), habitText(maps, choice)].filter(Boolean).join(", ");
  const names = { type: "button", class: "thumb", role: "radio", "aria-label": words, title: words };
  const button = make("button", { ...names, onclick: () => choose(panel, choice) }, canvas, make("span", {}, caption));
  button.paint = () => thumbnail(canvas, table, strengths(table, state.strongest), ink());
  button.choice = choice;
  button.paint();
  return button;
}

// Below a small map: its head; sorted, its layer and head and what it is sorted by.
function captionOf(maps, { layer, head }) {
  if (state.sort !== "place") return `${layer + 1}·${head + 1}: ${maps.habits[state.sort][layer][head].toFixed(2)}`;
  if (typeof head === "number") return `${head + 1}`;
  return layer === "all" ? `${head} of all` : head;
}

// Fill the grid of a panel anew.
function drawHeads(panel) {
  const maps = mapsOf(panel.reading, state.kind);
  const single = !maps || maps.layers * maps.heads === 1;
  panel.heads.hidden = single && !(maps && maps.rollout);
  panel.thumbs = [];
  if (panel.heads.hidden) return;
  const sorted = state.sort !== "place";
  panel.heads.classList.toggle("sorted", sorted);
  const rows = sorted ? [inOrder(maps, state.sort)] : choices(maps);
  panel.heads.replaceChildren(...rows.map((row) => {
    const layer = row[0].layer;
    const label = sorted ? `${state.sort}, rising` : layer === "all" ? "all layers" : `layer ${layer + 1}`;
    const thumbs = row.map((choice) => thumb(panel, maps, choice, captionOf(maps, choice)));
    panel.thumbs.push(...thumbs);
    return make("div", { class: "layer" }, make("span", { class: "layer-name" }, label), ...thumbs);
  }));
  markChosen(panel);
}

// The chosen one is marked, and the only one that Tab stops at.
function markChosen(panel) {
  const chosen = panel.thumbs.find(({ choice }) => choice.layer === panel.layer && choice.head === panel.head);
  for (const one of panel.thumbs) {
    one.setAttribute("aria-checked", String(one === chosen));
    one.tabIndex = one === (chosen || panel.thumbs[0]) ? 0 : -1;
  }
}

// Arrow keys go to the neighbour that one sees, and choose it.
function walkHeads(panel, event) {
  const at = panel.thumbs.indexOf(document.activeElement);
  const step = STEPS[event.key];
  if (at < 0 || !step) return;
  event.preventDefault();
  const next = step[1] ? panel.thumbs[at + step[1]] : neighbour(panel.thumbs, panel.thumbs[at], step[0] > 0);
  if (!next) return;
  choose(panel, next.choice);
  next.focus();
}

function neighbour(thumbs, from, below) {
  const here = from.getBoundingClientRect();
  const boxes = thumbs.map((one) => [one, one.getBoundingClientRect()]);
  const beyond = boxes.filter(([, box]) => (below ? box.top >= here.bottom - 2 : box.bottom <= here.top + 2));
  const far = ([, box]) => 1000 * Math.abs(box.top - here.top) + Math.abs(box.left - here.left);
  beyond.sort((one, other) => far(one) - far(other));
  return beyond.length ? beyond[0][0] : null;
}
