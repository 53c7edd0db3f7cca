// Other ways to say it: the best translation and those the search kept beside it, each one a button.

import { element } from "./dom.js";
import { keep, recall } from "./memory.js";

const ASKED = 3;

export class Alternatives {
  /** `opened` is called when the list is opened, `chosen(text)` when one is picked. */
  constructor({ box, list, opened, chosen }) {
    Object.assign(this, { box, list, chosen });
    let open = (box.open = recall("alternatives", true));
    box.addEventListener("toggle", () => {
      if (box.open === open) return; // the browser tells of our own opening too
      open = box.open;
      keep("alternatives", open);
      if (open) opened();
    });
  }

  /** How many to ask for: none while nobody looks at them. */
  get wanted() {
    return this.box.open ? ASKED : 0;
  }

  show(answer) {
    const others = answer?.alternatives ?? [];
    this.box.hidden = !answer || (this.box.open && !others.length);
    this.list.replaceChildren(...(others.length ? [{ text: answer.text }, ...others] : []).map((each) => this.#line(each)));
    this.mark(answer?.text);
  }

  /** Marks the one in view. */
  mark(text) {
    const buttons = [...this.list.querySelectorAll("button")];
    const inView = buttons.find((button) => button.value === text);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === inView));
  }

  #line({ text, score }) {
    const button = element("button", { type: "button", value: text }, element("span", { dir: "auto", className: "wording", textContent: text }));
    if (typeof score === "number") button.append(element("span", { className: "soft", title: "Score: higher is likelier", textContent: score.toFixed(2).replace("-", "−") }));
    button.addEventListener("click", () => {
      this.chosen(text);
      this.mark(text);
    });
    return element("li", {}, button);
  }
}
