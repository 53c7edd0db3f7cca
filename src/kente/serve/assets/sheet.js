// A text area on a cloth: beneath it the same text lies once more, unseen, cut into words that can be shaded.

import { element } from "./dom.js";

const EDGE = "\u200b"; // a last line that is empty has no height without it

/** For each code point of a text, and its end, where it begins in JavaScript's string: there a rare letter such as 𝒳 counts twice. */
export function offsets(text) {
  const at = [0];
  for (const letter of text) at.push(at[at.length - 1] + letter.length);
  return at;
}

export class Sheet {
  constructor(area) {
    this.area = area;
    this.cloth = area.previousElementSibling;
    this.spans = [];
    area.addEventListener("input", () => this.lay());
    this.lay();
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.lay();
  }

  /** The text without words. */
  lay() {
    this.spans = [];
    this.cloth.replaceChildren(this.text + EDGE);
  }

  /** The text with a span for each of `words` ({start, end} in code points, in order); null for one that does not fit. */
  weave(words) {
    const text = this.text;
    const at = offsets(text);
    const woven = document.createDocumentFragment();
    let end = 0;
    this.spans = words.map((word) => {
      const [from, to] = [at[word.start], at[word.end]];
      if (!(from >= end && to > from)) return null;
      const span = element("span", { textContent: text.slice(from, to) });
      woven.append(text.slice(end, from), span);
      end = to;
      return span;
    });
    woven.append(text.slice(end) + EDGE);
    this.cloth.replaceChildren(woven);
  }

  /** The number of the word under a point of the window, or -1. */
  wordAt(x, y) {
    const below = document.elementsFromPoint(x, y);
    return this.spans.findIndex((span) => span !== null && below.includes(span));
  }
}
