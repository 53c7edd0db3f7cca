// Teaching: edit the translation, and the pair goes to whoever trains next.

import { patiently, suggest } from "./server.js";
import { offsets } from "./sheet.js";

/** {q, s}: the sentences that were changed, or everything where the changes cannot be told apart. */
export function changedPart(source, answer, edited) {
  const whole = { q: source.trim(), s: edited.trim() };
  const sentences = answer.sentences ?? [];
  if (sentences.length < 2) return whole;
  const [from, to] = [offsets(source), offsets(answer.text)];
  let [first, last] = [0, sentences.length - 1];
  while (first < last && edited.startsWith(answer.text.slice(0, to[sentences[first + 1].start]))) first++;
  while (last > first && edited.endsWith(answer.text.slice(to[sentences[last - 1].end]))) last--;
  const end = edited.length - (answer.text.length - to[sentences[last].end]);
  const q = source.slice(from[sentences[first].source_start], from[sentences[last].source_end]).trim();
  const s = edited.slice(to[sentences[first].start], Math.max(end, 0)).trim();
  return q && s ? { q, s } : whole;
}

export class Corrections {
  #before = "";
  #sending = new AbortController();

  /** `current()` is {q, answer, target} of the translation in view; `on(correcting)` hears when editing begins and ends. */
  constructor({ sheet, correct, teach, cancel, said, current, on }) {
    Object.assign(this, { sheet, correct, teach, cancel, said, current, on });
    correct.addEventListener("click", () => this.begin());
    cancel.addEventListener("click", () => this.#giveUp());
    teach.addEventListener("click", () => this.#teach());
    sheet.area.addEventListener("input", () => this.#refresh());
    sheet.area.addEventListener("keydown", (event) => {
      if (sheet.area.readOnly) return;
      if (event.key === "Escape") this.#giveUp();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !teach.disabled) this.#teach();
    });
  }

  get going() {
    return !this.sheet.area.readOnly;
  }

  begin() {
    this.#before = this.sheet.text;
    this.said.replaceChildren();
    this.#edit(true);
    this.sheet.area.focus();
  }

  /** Ends editing; the text stays as it is. */
  end() {
    this.#sending.abort();
    if (this.going) this.#edit(false);
  }

  #giveUp() {
    this.sheet.text = this.#before;
    this.end();
    this.correct.focus();
  }

  #edit(going) {
    this.sheet.area.readOnly = !going;
    this.correct.hidden = going;
    this.teach.hidden = this.cancel.hidden = !going;
    this.#refresh();
    this.on(going);
  }

  #refresh() {
    const { answer } = this.current();
    this.teach.disabled = !this.sheet.text.trim() || this.sheet.text === answer?.text;
  }

  async #teach() {
    const { q, answer, target } = this.current();
    const pair = { ...changedPart(q, answer, this.sheet.text), source: answer.source, target };
    this.#sending = new AbortController();
    const { signal } = this.#sending;
    this.teach.disabled = true;
    try {
      await patiently(() => suggest(pair, signal), signal, (trouble, left) => {
        this.said.textContent = `${trouble.message} Trying again in ${left} s.`;
      });
      this.said.textContent = "Kept for the next training. Thank you.";
      this.#edit(false);
      this.correct.focus();
    } catch (trouble) {
      if (signal.aborted) return;
      this.said.textContent = trouble.message;
      this.#refresh();
    }
  }
}
