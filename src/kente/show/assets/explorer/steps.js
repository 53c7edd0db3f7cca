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
  panel.slider = make("input", {
    type: "range", min: 1, max: steps.length, value: steps.length, "aria-label": "step of the decoding", oninput: () => goTo(panel, Number(panel.slider.value) - 1),
  });
  panel.count = make("output", { class: "count" });
  panel.chips = steps.map((step, place) => make("button", { type: "button", class: "chip", tabindex: -1, onclick: () => goTo(panel, place) }, step.piece));
  panel.told = make("div", { class: "told" });
  const back = make("button", { type: "button", "aria-label": "one step back", onclick: () => goBy(panel, -1) }, "◀");
  const on = make("button", { type: "button", "aria-label": "one step on", onclick: () => goBy(panel, 1) }, "▶");
  const whole = make("button", { type: "button", class: "whole", onclick: () => goTo(panel, null) }, "whole");
  panel.walk = make("section", { class: "walk" },
    make("h4", {}, "Step by step"),
    make("div", { class: "slide" }, back, panel.slider, on, panel.count, whole),
    make("p", { class: "chips", dir: "auto" }, ...panel.chips),
    panel.told);
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
  const step = panel.step;
  const now = step === null ? steps.length : step + 1;
  panel.slider.value = now;
  panel.slider.setAttribute("aria-valuetext", step === null ? "whole" : `${now} of ${steps.length}: ${steps[step].piece}`);
  panel.count.textContent = step === null ? "" : `${now} of ${steps.length}`;
  panel.chips.forEach((chip, place) => {
    chip.classList.toggle("now", place === step);
    chip.classList.toggle("later", place >= now);
  });
  panel.told.replaceChildren(...(step === null ? [make("p", { class: "note" }, "Move the slider to see each piece being written.")] : told(panel, step)));
}

function told(panel, place) {
  const step = panel.reading.steps[place];
  return [make("div", { class: "columns-of-two" }, candidates(step), beam(panel, place))];
}

function candidates(step) {
  const written = step.candidates.findIndex(([piece]) => piece === step.piece);
  const list = step.candidates.map(([piece, share], place) => candidate(piece, share, place === written && step.rank === place + 1));
  if (!list.some((one) => one.classList.contains("taken"))) list.push(candidate(step.piece, step.p, true, step.rank));
  return make("div", {}, make("h5", {}, "what might come next"), make("ol", { class: "candidates" }, ...list));
}

function candidate(piece, share, taken, rank) {
  const bar = make("span", { class: "bar-of", style: `--share:${share}`, "aria-hidden": "true" });
  const words = make("span", { class: "piece", dir: "auto" }, piece);
  return make("li", { class: taken ? "taken" : null }, bar, words, make("span", { class: "share" }, `${percent(share)}${rank ? ` (number ${rank})` : ""}${taken ? " ✓" : ""}`));
}

function beam(panel, place) {
  const { reading } = panel;
  const { beginnings } = reading.steps[place];
  if (!beginnings.length) {
    const why = reading.given && reading.answer !== reading.text ? "The target was given, so no beam led to it. Of itself the model writes: " : "No search led here.";
    return make("div", {}, make("h5", {}, "the beam"), make("p", { class: "note" }, why, make("span", { dir: "auto" }, reading.given ? reading.answer : "")));
  }
  const groups = [
    [reading.beam > 1 ? "alive" : "carried on", beginnings.filter(([, , fate]) => fate === "lives")],
    ["ended here", beginnings.filter(([, , fate]) => fate === "ended")],
    ["dropped", beginnings.filter(([, , fate]) => fate in FATES)],
  ];
  const lists = groups.filter(([, some]) => some.length).flatMap(([name, some]) => [make("h5", {}, name), make("ul", { class: `beam ${name.split(" ")[0]}` }, ...some.map(beginning))]);
  const last = place === reading.steps.length - 1 && reading.wentOn;
  const after = last ? [make("p", { class: "note" }, `The search went on for ${reading.wentOn} more ${reading.wentOn > 1 ? "steps" : "step"} and found nothing better.`)] : [];
  return make("div", {}, ...lists, ...after);
}

function beginning([text, worth, fate, chosen]) {
  const why = FATES[fate] ? make("small", {}, FATES[fate]) : "";
  return make("li", { class: chosen ? "chosen" : null }, make("span", { dir: "auto", class: "text" }, text || "(nothing yet)"), make("span", { class: "share" }, `log p ${worth.toFixed(2)}`), why);
}
