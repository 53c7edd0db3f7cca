// Choose a word of the translation and see which words of the source the model looked at when it wrote it.

import { isolated, percent } from "./dom.js";

const NAMED = 4; // words told in the sentence below the translation; the shading shows them all
const SLIGHT = 0.05;

export class Looking {
  #words = [];
  #chosen = -1;

  /** `changed` is called when another word, or none, is chosen. */
  constructor(source, target, readout, changed) {
    Object.assign(this, { source, target, readout, changed });
    target.area.addEventListener("click", (event) => target.area.readOnly && this.choose(target.wordAt(event.clientX, event.clientY)));
    target.area.addEventListener("keydown", (event) => target.area.readOnly && this.#walk(event));
  }

  /** Weaves the words of an answer into both sheets. */
  show(answer) {
    const sentences = answer.sentences ?? [];
    const sourceWords = [];
    this.#words = [];
    for (const sentence of sentences) {
      const first = sourceWords.length;
      sourceWords.push(...(sentence.source_words ?? []));
      this.#words.push(...(sentence.words ?? []).map((word) => ({ ...word, sentence, first })));
    }
    this.source.weave(sourceWords);
    this.target.weave(this.#words);
    this.#words.forEach((word, number) => {
      if (typeof word.confidence !== "number") return;
      this.target.spans[number]?.style.setProperty("--doubt", 1 - word.confidence);
      this.target.spans[number]?.classList.toggle("unsure", word.confidence < 0.5);
    });
    this.choose(-1);
  }

  /** No words: the texts are no longer those of an answer. */
  forget() {
    this.#words = [];
    this.source.lay();
    this.target.lay();
    this.choose(-1);
  }

  /** The sentence of the chosen word, if one is. */
  get sentence() {
    return this.#words[this.#chosen]?.sentence ?? null;
  }

  /** Shades the source for a word of the translation; -1 chooses none. */
  choose(number) {
    this.#leave();
    const word = this.#words[number];
    if (word) this.#look(word, number);
    else this.readout.replaceChildren(this.#words.length ? "Choose a word to see where the model looked." : "");
    this.changed();
  }

  #look(word, number) {
    this.#chosen = number;
    this.target.spans[number]?.classList.add("chosen");
    for (const [place, weight] of word.looks_at ?? []) {
      const span = this.source.spans[word.first + place];
      span?.classList.add("looked");
      span?.style.setProperty("--share", weight);
    }
    this.readout.replaceChildren(...this.#sentenceAbout(word));
  }

  #sentenceAbout(word) {
    const parts = [isolated(word.text)];
    if (typeof word.confidence === "number") parts.push(` (${percent(word.confidence)} sure)`);
    const most = [...(word.looks_at ?? [])].sort((one, other) => other[1] - one[1]).slice(0, NAMED);
    const named = most.filter(([, weight], place) => place === 0 || weight >= SLIGHT);
    if (!named.length) return [...parts, ": no weights to show."];
    named.forEach(([place, weight], position) => {
      const looked = word.sentence.source_words[place];
      parts.push(position ? ", " : " looked at ", isolated(looked ? looked.text : "?"), ` ${percent(weight)}`);
    });
    return parts;
  }

  #leave() {
    this.target.spans[this.#chosen]?.classList.remove("chosen");
    for (const span of this.source.spans) span?.classList.remove("looked");
    this.#chosen = -1;
  }

  #walk(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || !this.#words.length) return;
    const onward = getComputedStyle(this.target.area).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = onward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const last = this.#words.length - 1;
    const to = {
      [onward]: Math.min(this.#chosen + 1, last),
      [back]: this.#chosen < 0 ? last : Math.max(this.#chosen - 1, 0),
      Home: 0,
      End: last,
      Escape: -1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(to);
  }
}
