// Which language to translate from and to: only pairs the server can translate are offered.

import { element } from "./dom.js";

export const AUTO = "auto";

export class Languages {
  #known = [];
  #detected = null;

  /** `changed` is called when someone chooses; `swapped` when the two change places. */
  constructor({ from, to, swap, changed, swapped }) {
    Object.assign(this, { fromField: from, toField: to, swapButton: swap });
    from.addEventListener("change", () => {
      this.#detected = null;
      this.#fill(this.from, this.to);
      changed();
    });
    to.addEventListener("change", () => {
      this.#refresh();
      changed();
    });
    swap.addEventListener("click", () => {
      const [from, to] = [this.to, this.source];
      this.#detected = null;
      this.#fill(from, to);
      swapped();
    });
  }

  get from() {
    return this.fromField.value;
  }

  get to() {
    return this.toField.value;
  }

  /** The source's code, detected if need be; null while unknown. */
  get source() {
    return this.from === AUTO ? this.#detected : this.from;
  }

  name(code) {
    return this.#known.find((language) => language.code === code)?.name ?? code;
  }

  /** Takes the server's list; `from` and `to` are wishes. */
  offer(list, from, to) {
    this.#known = list;
    this.#fill(from, to);
  }

  /** Whether the pair is offered; it is chosen if so. */
  choose(from, to) {
    if (!this.#sources().includes(from) || !this.#targets(from).includes(to)) return false;
    this.#detected = null;
    this.#fill(from, to);
    return true;
  }

  /** Shows what the server took the text for; null: nothing yet. */
  detected(code) {
    this.#detected = this.from === AUTO ? code : null;
    this.#refresh();
  }

  #targets(from) {
    const speakers = from === AUTO ? this.#known : this.#known.filter((language) => language.code === from);
    const codes = speakers.flatMap((language) => language.targets.filter((code) => code !== language.code));
    return [...new Set(codes)];
  }

  #sources() {
    const codes = this.#known.map((language) => language.code).filter((code) => this.#targets(code).length);
    return codes.length > 1 ? [AUTO, ...codes] : codes; // of one language there is nothing to detect
  }

  #fill(from, to) {
    this.#options(this.fromField, this.#sources(), from);
    this.#options(this.toField, this.#targets(this.from), to);
    this.#refresh();
  }

  #options(field, codes, wish) {
    field.replaceChildren(...codes.map((code) => element("option", { value: code, textContent: this.name(code) })));
    if (codes.includes(wish)) field.value = wish;
  }

  #refresh() {
    const auto = [...this.fromField.options].find((option) => option.value === AUTO);
    if (auto) auto.textContent = this.#detected ? `Detected: ${this.name(this.#detected)}` : "Detect language";
    const possible = this.source !== null && this.#targets(this.to).includes(this.source);
    this.swapButton.disabled = !possible;
    this.swapButton.title = possible || this.source === null ? "" : `No model here translates ${this.name(this.to)} to ${this.name(this.source)}`;
  }
}
