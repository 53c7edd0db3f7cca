// ---- Decoding, walked through: the piece being written, what else might have come, and what the beam held and dropped.

const FATES = {
  beaten: "pushed out by likelier ones",
  hopeless: "could no longer beat an answer that was there",
  weak: "ended, but below an answer that was there",
};

function percent(share) {
  if (share >= 0.9995 || share === 0) return `${(100 * share).toFixed(0)} %`;
  return share >= 0.001 ? `${(100 * share).toFixed(1)} %` : `${(100 * share).toPrecision(1)} %`;
}

function makeSteps(panel) {
  const { steps } = panel.reading;
  const button = (words, act, more = {}) => make("button", { type: "button", onclick: act, ...more }, words);
  const range = { type: "range", min: 1, max: steps.length, value: steps.length, "aria-label": "step of the decoding" };
  panel.slider = make("input", { ...range, oninput: () => goTo(panel, Number(panel.slider.value) - 1) });
  panel.count = make("output", { class: "count" });
  panel.chips = steps.map((step, place) => button(step.piece, () => goTo(panel, place), { class: "chip", tabindex: -1 }));
  panel.told = make("div", { class: "told" });
  const slide = make("div", { class: "slide" },
    button("◀", () => goBy(panel, -1), { "aria-label": "one step back" }),
    panel.slider,
    button("▶", () => goBy(panel, 1), { "aria-label": "one step on" }),
    panel.count,
    button("whole", () => goTo(panel, null)));
  const chips = make("p", { class: "chips", dir: "auto" }, ...panel.chips);
  panel.walk = make("section", { class: "walk" }, make("h4", {}, "Step by step"), slide, chips, panel.told);
}

// null shows the decoding whole.
function goTo(panel, step) {
  panel.step = step;
  drawStep(panel);
  drawFocus(panel);
}
function goBy(panel, by) {
  const last = panel.reading.steps.length - 1;
  const from = panel.step === null ? (by > 0 ? -1 : last + 1) : panel.step;
  goTo(panel, Math.min(last, Math.max(0, from + by)));
}

function drawStep(panel) {
  const { steps } = panel.reading;
  const { step } = panel;
  const now = step === null ? steps.length : step + 1;
  panel.slider.value = now;
  panel.slider.setAttribute("aria-valuetext", step === null ? "whole" : `${now} of ${steps.length}: ${steps[step].piece}`);
  panel.count.textContent = step === null ? "" : `${now} of ${steps.length}`;
  panel.chips.forEach((chip, place) => {
    chip.classList.toggle("now", place === step);
    chip.classList.toggle("later", place >= now);
  });
  const idle = make("p", { class: "note" }, "Move the slider to see each piece being written.");
  const both = () => make("div", { class: "side-by-side" }, candidates(steps[step]), beam(panel.reading, step));
  panel.told.replaceChildren(step === null ? idle : both());
}

function candidates(step) {
  const list = step.candidates.map(([piece, share], place) => {
    return candidate(piece, share, piece === step.piece && step.rank === place + 1);
  });
  if (!list.some((one) => one.classList.contains("taken"))) list.push(candidate(step.piece, step.p, true, step.rank));
  return make("div", {}, make("h5", {}, "what might come next"), make("ol", { class: "candidates" }, ...list));
}

function candidate(piece, share, taken, rank) {
  const bar = make("span", { class: "bar-of", style: `--share:${share}`, "aria-hidden": "true" });
  const words = make("span", { class: "piece", dir: "auto" }, piece);
  const number = `${percent(share)}${rank ? ` (number ${rank})` : ""}${taken ? " ✓" : ""}`;
  return make("li", { class: taken ? "taken" : null }, bar, words, make("span", { class: "share" }, number));
}

function beam(reading, place) {
  const { beginnings } = reading.steps[place];
  if (!beginnings.length) return noBeam(reading);
  const some = (holds) => beginnings.filter(([, , fate]) => holds(fate));
  const groups = [
    ["alive", some((fate) => fate === "lives")],
    ["ended", some((fate) => fate === "ended")],
    ["dropped", some((fate) => fate in FATES)],
  ];
  const lists = groups.filter(([, members]) => members.length).flatMap(([name, members]) => [
    make("h5", {}, name), make("ul", { class: `beam ${name}` }, ...members.map(beginning)),
  ]);
  if (place === reading.steps.length - 1 && reading.wentOn) {
    const steps = `${reading.wentOn} more ${reading.wentOn > 1 ? "steps" : "step"}`;
    lists.push(make("p", { class: "note" }, `The search went on for ${steps} and found nothing better.`));
  }
  return make("div", {}, ...lists);
}

function noBeam({ given, answer }) {
  const why = given ? "The target was given, so no beam led to it. Of itself the model writes: " : "No search led here.";
  const note = make("p", { class: "note" }, why, make("span", { dir: "auto" }, given ? answer : ""));
  return make("div", {}, make("h5", {}, "the beam"), note);
}

function beginning([text, worth, fate, chosen]) {
  const words = make("span", { dir: "auto", class: "text" }, text || "(nothing yet)");
  const number = make("span", { class: "share" }, `log p ${worth.toFixed(2)}`);
  return make("li", { class: chosen ? "chosen" : null }, number, words, FATES[fate] ? make("small", {}, FATES[fate]) : "");
}
