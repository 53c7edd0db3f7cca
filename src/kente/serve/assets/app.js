// The page: puts its parts together. Each part is one module beside this one.

import { Alternatives } from "./alternatives.js";
import { Corrections } from "./corrections.js";
import { byId, capital, element } from "./dom.js";
import { Files } from "./files.js";
import { History } from "./history.js";
import { AUTO, Languages } from "./languages.js";
import { Looking } from "./looking.js";
import { keep, recall } from "./memory.js";
import { KeyNotice, TroubleNotice } from "./notices.js";
import * as server from "./server.js";
import { offsets, Sheet } from "./sheet.js";
import { Translating } from "./translating.js";

const SETTLED = 1500; // milliseconds of rest after which a translation is read out and kept in the history
const PAUSE = 400; // milliseconds without a key after which a text is translated, unless the server says otherwise
const READ_OUT = 300; // characters
const EXAMPLES = 4;

let settings = {};
let isOpen = false; // whether settings and languages are known
let shown = null; // {q, answer, target}: what the translation in view is of
let parts = []; // sentences of a long text that have arrived
let settling = 0;

const source = new Sheet(byId("source"));
const target = new Sheet(byId("target"));
const trouble = new TroubleNotice({ box: byId("trouble"), said: byId("trouble-said"), wait: byId("trouble-wait"), again: byId("trouble-again") });
const key = new KeyNotice({ form: byId("key"), field: byId("key-field"), remember: byId("key-keep"), given: () => translateNow() });
const say = (text) => (byId("said").textContent = text);

const languages = new Languages({ from: byId("from"), to: byId("to"), swap: byId("swap"), changed: languagesChanged, swapped });
const history = new History({
  list: byId("history-list"),
  clear: byId("history-clear"),
  switcher: byId("history-keep"),
  name: (code) => languages.name(code),
  restore: (entry) => start(entry.source, entry.target, entry.q),
});
const looking = new Looking(source, target, byId("looks"), refreshExplore);
const alternatives = new Alternatives({ box: byId("alternatives"), list: byId("alternatives-list"), opened: () => translateNow(), chosen: showWording });
const corrections = new Corrections({
  sheet: target,
  correct: byId("correct"),
  teach: byId("teach"),
  cancel: byId("cancel"),
  said: byId("taught"),
  current: () => shown ?? {},
  on: (going) => {
    byId("target-pane").classList.toggle("correcting", going);
    if (going) looking.forget();
    else if (shown) showWording(target.text);
  },
});
const translating = new Translating({ begun, part, answered, waiting, failed });

// ---------------------------------------------------------------- asking

function request() {
  const q = source.text.toWellFormed?.() ?? source.text;
  return { q, source: languages.from, target: languages.to, format: "text", alternatives: alternatives.wanted, words: true };
}

/** Why this text is not sent, or "". */
function obstacle() {
  if (!languages.to) return "The server offers no languages.";
  if (settings.charLimit > 0 && letters() > settings.charLimit) {
    return `This text has ${letters().toLocaleString("en")} characters; the server takes ${settings.charLimit.toLocaleString("en")}.`;
  }
  return "";
}

const letters = () => offsets(source.text).length - 1;

function translateSoon() {
  if (ready()) translating.soon(request(), settings.frontendTimeout > 0 ? settings.frontendTimeout : PAUSE);
}

function translateNow() {
  if (ready()) translating.now(request());
}

function ready() {
  if (!isOpen) return false;
  translating.stop();
  trouble.clear();
  if (!source.text.trim()) {
    empty();
    return false;
  }
  if (settings.keyRequired && !key.known) {
    rest();
    key.ask();
    return false;
  }
  const why = obstacle();
  if (why) failed(new server.Trouble(why));
  return !why;
}

function begun() {
  parts = [];
  byId("target-pane").classList.add("busy");
  byId("engine").textContent = "Translating…";
}

// ---------------------------------------------------------------- answers

/** A sentence of a long text: what has arrived without a gap is shown, spaced as the source is. */
function part(asked, sentence) {
  parts.push(sentence);
  parts.sort((one, other) => one.source_start - other.source_start);
  byId("engine").textContent = `Translating… ${parts.length} of ${sentence.of}`;
  const at = offsets(asked.q);
  let [text, end] = ["", 0];
  for (const each of parts) {
    const between = asked.q.slice(at[end], at[each.source_start]);
    if (between.trim() || typeof each.text !== "string") break;
    text += between + each.text;
    end = each.source_end;
  }
  if (text) target.text = text;
}

function answered(asked, answer) {
  trouble.clear();
  rest();
  corrections.end();
  shown = { q: asked.q, answer, target: asked.target };
  languages.detected(answer.detected ? answer.detected.language : null);
  source.area.lang = answer.source ?? "";
  target.area.lang = asked.target;
  byId("taught").replaceChildren();
  byId("copy").disabled = false;
  showWording(answer.text);
  alternatives.show(answer);
  showWarnings(answer.warnings ?? []);
  byId("engine").textContent = [answer.engine, `${Math.round(answer.milliseconds)} ms`].filter(Boolean).join(" · ");
  byId("correct").hidden = !settings.suggestions;
  clearTimeout(settling);
  settling = setTimeout(settleAloud, SETTLED);
}

/** Puts a wording into the translation; the words of the answer belong to its own only. */
function showWording(text) {
  if (target.text !== text) target.text = text;
  if (text === shown.answer.text && target.text === text && source.text === shown.q) looking.show(shown.answer);
  else looking.forget();
}

function showWarnings(warnings) {
  const list = byId("warnings");
  list.hidden = !warnings.length;
  list.replaceChildren(...warnings.map((warning) => element("li", { textContent: capital(warning.message) })));
}

function waiting(why, seconds, goOn) {
  rest();
  trouble.show(why, goOn, seconds);
}

function failed(why) {
  rest();
  if (why.key) key.ask();
  trouble.show(why, translateNow);
}

function rest() {
  byId("target-pane").classList.remove("busy");
  byId("engine").textContent = "";
}

function empty() {
  rest();
  shown = null;
  clearTimeout(settling);
  corrections.end();
  looking.forget();
  target.text = "";
  alternatives.show(null);
  showWarnings([]);
  languages.detected(null);
  byId("taught").replaceChildren();
  byId("copy").disabled = true;
  byId("correct").hidden = true;
}

/** A translation that stands is kept for later. */
function settle() {
  clearTimeout(settling);
  if (!shown || shown.q !== source.text) return false;
  history.add({ q: shown.q, text: shown.answer.text, source: shown.answer.source, target: shown.target });
  return true;
}

/** And read out to those who listen. */
function settleAloud() {
  if (!settle()) return;
  const short = shown.answer.text.length <= READ_OUT;
  say(short ? shown.answer.text : "The translation is ready.");
  byId("said").lang = short ? shown.target : "";
}

// ---------------------------------------------------------------- the explorer

/** The sentence of the chosen word, or the first one. */
function explored() {
  const sentence = looking.sentence ?? shown.answer.sentences?.[0];
  if (!sentence) return shown.q;
  const at = offsets(shown.q);
  return shown.q.slice(at[sentence.source_start], at[sentence.source_end]);
}

function refreshExplore() {
  const link = byId("explore");
  link.hidden = !shown || source.text !== shown.q;
  if (link.hidden) return;
  const several = (shown.answer.sentences ?? []).length > 1;
  link.title = !several ? "" : looking.sentence ? "The sentence of the chosen word" : "The first sentence; choose a word for another";
  link.href = `look?${new URLSearchParams(explorerFields())}`;
}

const explorerFields = () => ({ source: shown.answer.source, target: shown.target, q: explored() });

byId("explore").addEventListener("click", (event) => {
  settle();
  if (!key.known) return;
  event.preventDefault();
  server.openWithKey("look", explorerFields());
});

// ---------------------------------------------------------------- what people do

function typed() {
  byId("clear").disabled = !source.text;
  showCount();
  if (isOpen) keep("now", { q: source.text, source: languages.from, target: languages.to }, { session: true });
  corrections.end();
  looking.forget();
  translateSoon();
}

function showCount() {
  const limit = settings.charLimit;
  const near = limit > 0 && letters() > 0.8 * limit;
  byId("count").textContent = near ? `${letters().toLocaleString("en")} of ${limit.toLocaleString("en")} characters` : "";
  byId("count").classList.toggle("over", limit > 0 && letters() > limit);
}

source.area.addEventListener("input", (event) => {
  if (!event.isComposing) typed(); // half a letter of a script that is composed is no text yet
});
source.area.addEventListener("compositionend", typed);
source.area.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translateNow();
});

byId("clear").addEventListener("click", () => {
  settle();
  history.anew();
  source.text = "";
  typed();
  source.area.focus();
});

/** Another text, from an example, the history or an address. */
function start(from, to, text) {
  settle();
  history.anew();
  languages.choose(from, to);
  source.text = text;
  typed();
  translateNow();
  scrollTo({ top: 0 });
  source.area.focus({ preventScroll: true });
}

function languagesChanged() {
  keep("languages", [languages.from, languages.to]);
  showExamples();
  typed();
  translateNow();
}

function swapped() {
  settle();
  history.anew();
  if (target.text) source.text = target.text;
  languagesChanged();
}

byId("copy").addEventListener("click", async () => {
  const label = byId("copy").lastElementChild;
  label.textContent = (await copied()) ? "Copied" : "Press Ctrl+C to copy";
  say(label.textContent);
  settle();
  setTimeout(() => (label.textContent = "Copy"), 2000);
});

/** Whether the translation is on the clipboard; the newer way is refused to pages that come over plain HTTP. */
async function copied() {
  try {
    await navigator.clipboard.writeText(target.text);
    return true;
  } catch {
    target.area.select();
    return document.execCommand("copy");
  }
}

function showConfidence(on) {
  byId("confidence").setAttribute("aria-pressed", String(on));
  byId("target-pane").classList.toggle("doubts", on);
}

byId("confidence").addEventListener("click", () => {
  const on = byId("confidence").getAttribute("aria-pressed") !== "true";
  keep("confidence", on);
  showConfidence(on);
});

addEventListener("pagehide", settle);

// ---------------------------------------------------------------- beginning

/** A few sentences to try, those of the languages in view first. */
function showExamples() {
  const fits = ({ source: from, target: to }) => to === languages.to && (from === languages.from || languages.from === AUTO);
  const chosen = (settings.examples ?? []).toSorted((one, other) => fits(other) - fits(one)).slice(0, EXAMPLES);
  const buttons = chosen.map(({ q, source: from, target: to }) => {
    const button = element("button", { type: "button", className: "chip", dir: "auto", lang: from, textContent: q });
    button.addEventListener("click", () => start(from, to, q));
    return button;
  });
  byId("examples").replaceChildren(byId("examples-heading"), ...buttons);
  byId("examples").hidden = !buttons.length;
}

/** What to begin with: the address's wish, this tab's text, or the languages of last time. */
function beginning() {
  const wish = new URLSearchParams(location.search);
  const now = recall("now", {}, { session: true });
  const [from, to] = recall("languages", []);
  return {
    from: wish.get("source") ?? now.source ?? from ?? settings.language?.source?.code ?? AUTO,
    to: wish.get("target") ?? now.target ?? to ?? settings.language?.target?.code,
    q: wish.get("q") ?? now.q ?? "",
  };
}

function open([given, list]) {
  settings = given;
  isOpen = true;
  const { from, to, q } = beginning();
  languages.offer(list, from, to);
  history.show(); // now that languages have names
  showExamples();
  if (settings.filesTranslation !== false) {
    byId("files").hidden = false;
    const formats = settings.supportedFilesFormat ?? [".txt", ".html", ".po", ".srt", ".tsv"];
    const pair = () => ({ source: languages.from, target: languages.to });
    new Files({ field: byId("file-field"), drop: byId("drop"), list: byId("file-list"), kinds: byId("file-kinds"), formats, pair, say });
  }
  if (settings.keyRequired && !key.known) key.ask();
  if (!source.text) source.text = q; // unless someone was faster than the server
  if (source.text) typed();
}

async function begin() {
  const { signal } = new AbortController();
  const both = () => Promise.all([server.settings(), server.languages()]);
  try {
    const answers = await server.patiently(both, signal, waiting);
    trouble.clear();
    open(answers);
  } catch (why) {
    trouble.show(why, begin);
  }
}

showConfidence(recall("confidence", true));
begin();
