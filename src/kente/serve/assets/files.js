// Files: chosen or dropped, translated one after the other, each with its progress and a link when it is done.

import { element } from "./dom.js";
import { patiently, translateFile } from "./server.js";

const nameEnds = (name, ends) => ends.some((end) => name.toLowerCase().endsWith(end.toLowerCase()));

export class Files {
  #queue = Promise.resolve();

  /** `pair()` gives {source, target}. */
  constructor({ field, drop, list, kinds, formats, pair, say }) {
    Object.assign(this, { field, list, formats, pair, say });
    field.accept = formats.join(",");
    kinds.textContent = formats.join(" ");
    field.addEventListener("change", () => {
      this.take(field.files);
      field.value = ""; // the same file may be chosen again
    });
    this.#acceptDrops(drop);
  }

  take(files) {
    for (const file of files) this.#add(file);
  }

  /** A file may be dropped anywhere on the page; the browser would otherwise leave the page to open it. */
  #acceptDrops(drop) {
    const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const mark = (on) => drop.classList.toggle("over", on);
    addEventListener("dragover", (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      mark(true);
    });
    addEventListener("dragleave", (event) => event.relatedTarget === null && mark(false));
    addEventListener("drop", (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      mark(false);
      this.take(event.dataTransfer.files);
    });
  }

  #add(file) {
    const bar = element("progress", { className: "bar" });
    bar.setAttribute("aria-label", `Progress of ${file.name}`);
    const said = element("span", { className: "soft", textContent: "Waiting" });
    const stop = element("button", { type: "button", textContent: "Cancel" });
    stop.setAttribute("aria-label", `Cancel ${file.name}`);
    const row = element("li", {}, element("bdi", { className: "name", textContent: file.name }), stop, bar, said);
    this.list.append(row);
    const controller = new AbortController();
    stop.addEventListener("click", () => controller.abort());
    const pair = this.pair();
    this.#queue = this.#queue.then(() => this.#translate(file, pair, controller.signal, { row, bar, said, stop }));
  }

  async #translate(file, { source, target }, signal, { row, bar, said, stop }) {
    try {
      signal.throwIfAborted();
      if (!nameEnds(file.name, this.formats)) throw new Error(`Files of this kind cannot be translated; these can: ${this.formats.join(" ")}`);
      if (!file.size) throw new Error("This file is empty.");
      said.textContent = "Translating";
      const told = (done, of) => {
        Object.assign(bar, { max: Math.max(of, 1), value: done });
        said.textContent = `${done} of ${of}`;
      };
      const made = await patiently(() => translateFile(file, source, target, signal, told), signal, (trouble, left) => {
        said.textContent = `${trouble.message} Trying again in ${left} s.`;
      });
      said.replaceChildren(element("a", { href: made.url, download: made.name, className: "button strong" }, "Save ", element("bdi", { textContent: made.name })));
      this.say(`${file.name} is translated`);
    } catch (trouble) {
      said.textContent = signal.aborted ? "Cancelled" : trouble.message;
      row.classList.toggle("failed", !signal.aborted);
      this.say(`${file.name}: ${said.textContent}`);
    }
    bar.remove();
    const removed = element("button", { type: "button", className: "round small", title: "Remove", textContent: "×" });
    removed.setAttribute("aria-label", `Remove ${file.name} from the list`);
    removed.addEventListener("click", () => {
      row.remove();
      this.field.focus();
    });
    const focused = document.activeElement === stop;
    stop.replaceWith(removed);
    if (focused) removed.focus();
  }
}
