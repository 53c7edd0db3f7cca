// Translations of before, kept in the browser and nowhere else.

import { element } from "./dom.js";
import { keep, recall } from "./memory.js";

const MOST = 50;
const LONGEST = 5000; // characters of a text worth keeping: the browser's room is small

const isEntry = (entry) => ["q", "text", "source", "target"].every((field) => typeof entry?.[field] === "string");
/** Whether one is a stage of typing the other. */
const grows = (one, other) => one.source === other.source && one.target === other.target && (one.q.startsWith(other.q) || other.q.startsWith(one.q));

export class History {
  #typing = false;

  constructor({ list, clear, switcher, name, restore }) {
    Object.assign(this, { list, clear, name, restore });
    switcher.checked = recall("history.on", true);
    this.on = switcher.checked;
    switcher.addEventListener("change", () => {
      this.on = switcher.checked;
      keep("history.on", this.on);
    });
    clear.addEventListener("click", () => {
      this.#store([]);
      switcher.focus(); // the button goes away, the focus must not
    });
    addEventListener("storage", (event) => event.key === "kente.history" && this.show());
    this.show();
  }

  get entries() {
    return recall("history", []).filter(isEntry);
  }

  /** Keeps a translation in front; stages of typing the same text replace each other. */
  add({ q, text, source, target }) {
    if (!this.on || !q.trim() || q.length > LONGEST) return;
    const entry = { q, text, source, target };
    const others = this.entries.filter((other) => !(other.q === q && other.source === source && other.target === target));
    if (this.#typing && others.length && grows(others[0], entry)) others.shift();
    this.#typing = true;
    this.#store([entry, ...others].slice(0, MOST));
  }

  /** The next translation is of another text. */
  anew() {
    this.#typing = false;
  }

  #store(entries) {
    while (!keep("history", entries) && entries.length) entries.pop(); // no room: the oldest goes
    this.show();
  }

  show() {
    const entries = this.entries;
    this.clear.hidden = !entries.length;
    this.list.replaceChildren(...entries.map((entry) => this.#line(entry)));
  }

  #line(entry) {
    const again = element(
      "button",
      { type: "button", className: "again" },
      element("span", { className: "soft", textContent: `${this.name(entry.source)} to ${this.name(entry.target)}` }),
      element("span", { dir: "auto", className: "line", textContent: entry.q }),
      element("span", { dir: "auto", className: "line soft", textContent: entry.text }),
    );
    again.addEventListener("click", () => this.restore(entry));
    const remove = element("button", { type: "button", className: "round small", title: "Remove", textContent: "×" });
    remove.setAttribute("aria-label", `Remove from history: ${entry.q.slice(0, 60)}`);
    remove.addEventListener("click", () => {
      const place = [...this.list.children].indexOf(remove.parentNode);
      this.#store(this.entries.filter((other) => !(other.q === entry.q && other.source === entry.source && other.target === entry.target)));
      (this.list.children[place] ?? this.list.lastElementChild)?.firstElementChild.focus();
    });
    return element("li", {}, again, remove);
  }
}
