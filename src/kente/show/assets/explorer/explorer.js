// ---- The whole: a panel to each model, one row of controls for all, and keys for everything.

const state = { kind: Object.keys(explored.kinds)[0], lines: false, joined: true, strongest: false, known: true, sort: "place" };
const LEFT_OUT = "One word of the source is left out (a column): how much less likely is what was written (a row)? "
  + "Attention is not asked.";
const panels = explored.readings.map(makePanel);
const controls = [];

function makePanel(reading) {
  const panel = { reading, layer: 0, head: null, step: null, table: null, rest: "", thumbs: [] };
  const group = { role: "radiogroup", "aria-label": `heads of ${reading.name}` };
  panel.heads = make("div", { class: "heads scroll", ...group, onkeydown: (event) => walkHeads(panel, event) });
  panel.caption = make("figcaption");
  panel.stage = make("div", { class: "scroll stage" });
  panel.readout = make("output", { class: "readout" });
  panel.tools = makeTools(panel);
  makeSteps(panel);
  panel.element = make("article", { class: "reading" },
    make("header", {}, ...heading(reading)),
    make("div", { class: "left" }, panel.heads, panel.walk),
    make("figure", { class: "focus map" }, panel.caption, panel.stage, panel.readout, panel.tools));
  return panel;
}

function heading(reading) {
  const parts = [make("h3", {}, isolated(reading.name)), make("small", {}, reading.description)];
  parts.push(make("p", { class: "answer", dir: "auto" }, reading.text || "(nothing)"));
  if (reading.given && reading.answer !== reading.text) {
    const answer = make("span", { dir: "auto" }, reading.answer || "nothing");
    parts.push(make("p", { class: "note" }, "of itself it writes: ", answer));
  }
  return [...parts, ...reading.warnings.map((warning) => make("p", { class: "note" }, warning))];
}

// ---- choosing

// Where what was chosen before is not there, or nothing was chosen yet, the usual.
function settle(panel) {
  const maps = mapsOf(panel.reading, state.kind);
  if (!maps) return;
  const there = choices(maps).flat();
  if (there.some(({ layer, head }) => layer === panel.layer && head === panel.head)) return;
  panel.layer = maps.usual;
  panel.head = maps.heads > 1 ? "mean" : 0;
}
function choose(panel, { layer, head }) {
  panel.layer = layer;
  panel.head = head;
  markChosen(panel);
  drawFocus(panel);
}
// The same for every model that has it.
function chooseEverywhere(change) {
  for (const panel of panels) {
    const maps = mapsOf(panel.reading, state.kind);
    if (!maps) continue;
    const wanted = { layer: panel.layer, head: panel.head, ...change(panel, maps) };
    if (choices(maps).flat().some(({ layer, head }) => layer === wanted.layer && head === wanted.head)) choose(panel, wanted);
  }
}

function update(change = {}) {
  Object.assign(state, change);
  for (const control of controls) control();
  for (const panel of panels) {
    settle(panel);
    drawHeads(panel);
    drawFocus(panel);
  }
}

// ---- controls

function choice(name, options, setting) {
  const buttons = options.map(([value, words]) => {
    const button = make("button", { type: "button", onclick: () => update({ [setting]: value }) }, words);
    controls.push(() => button.setAttribute("aria-pressed", String(state[setting] === value)));
    return button;
  });
  const label = make("span", { class: "name" }, name);
  return make("div", { class: "choice", role: "group", "aria-label": name }, label, ...buttons);
}

const kinds = Object.entries(explored.kinds).map(([kind, { title }]) => [kind, title]);
if (explored.readings.some((reading) => reading.occlusion)) kinds.push([WITHOUT, "without a word"]);
const linked = explored.readings.some((reading) => reading.links.length);
const many = explored.readings.some(({ maps }) => maps.some(({ layers, heads }) => layers * heads > 1));
const sorts = [["place", "place"], ...HABITS.map((name) => [name, name])];
const explanation = make("p", { class: "note explanation" });
controls.push(() => {
  const kind = explored.kinds[state.kind];
  explanation.textContent = kind ? kind.explained : LEFT_OUT;
});
const toolbar = make("div", { class: "controls screen" },
  choice("show", kinds, "kind"),
  choice("as", [[false, "map"], [true, "lines"]], "lines"),
  choice("of", [[true, "words"], [false, "pieces"]], "joined"),
  choice("colour", [[false, "0 to 1"], [true, "to the strongest"]], "strongest"),
  ...(many ? [choice("heads by", sorts, "sort")] : []),
  ...(linked ? [choice("known alignment", [[true, "shown"], [false, "hidden"]], "known")] : []));

// ---- keys

function nextSort() {
  const names = sorts.map(([name]) => name);
  return names[(names.indexOf(state.sort) + 1) % names.length];
}
const ACTIONS = {
  m: () => chooseEverywhere(() => ({ head: "mean" })),
  x: () => chooseEverywhere(() => ({ head: "max" })),
  r: () => chooseEverywhere(({ layer }, maps) => ({ head: "rollout", layer: layer === "all" ? maps.layers - 1 : layer })),
  a: () => chooseEverywhere((panel, maps) => {
    if (panel.layer !== "all") return { layer: "all", head: panel.head === "max" ? "max" : "mean" };
    return { layer: maps.usual, head: maps.heads > 1 ? panel.head : 0 };
  }),
  s: () => update({ sort: nextSort() }),
  v: () => update({ lines: !state.lines }),
  p: () => update({ joined: !state.joined }),
  c: () => update({ strongest: !state.strongest }),
  k: () => update({ known: !state.known }),
  ",": () => panels.forEach((panel) => goBy(panel, -1)),
  ".": () => panels.forEach((panel) => goBy(panel, 1)),
  Escape: () => panels.forEach((panel) => goTo(panel, null)),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const number = Number(event.key);
  if (number >= 1 && number <= kinds.length) update({ kind: kinds[number - 1][0] });
  else if (Object.hasOwn(ACTIONS, event.key)) ACTIONS[event.key]();
  else return;
  event.preventDefault();
});

// ---- colours of the small maps follow the page's

function repaint() {
  for (const panel of panels) for (const one of panel.thumbs) one.paint();
}
for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  window.matchMedia(query).addEventListener("change", repaint);
}

for (const panel of panels) drawStep(panel);
const readings = make("div", { class: "readings" }, ...panels.map((panel) => panel.element));
readings.classList.toggle("several", panels.length > 1);
document.getElementById("explorer").append(toolbar, explanation, readings);
update();
