// What stands between the reader and a translation: trouble, and the key a server may want.

import { keep, recall } from "./memory.js";
import { Trouble, useKey } from "./server.js";

export class TroubleNotice {
  #again = () => {};

  constructor({ box, said, wait, again }) {
    Object.assign(this, { box, said, wait });
    again.addEventListener("click", () => this.#again());
  }

  /** Tells of trouble; with seconds, that trying again is under way. `again` is what the button does. */
  show(trouble, again, seconds = null) {
    const known = trouble instanceof Trouble;
    if (!known) console.error(trouble);
    const message = known ? trouble.message : `This page failed: ${trouble.message}`;
    if (this.said.textContent !== message) this.said.textContent = message; // said once, not each second
    this.wait.textContent = seconds === null ? "" : `Trying again in ${seconds} s`;
    this.#again = again;
    this.box.hidden = false;
  }

  clear() {
    this.box.hidden = true;
    this.said.textContent = "";
  }
}

export class KeyNotice {
  constructor({ form, field, remember, given }) {
    Object.assign(this, { form, field });
    this.known = recall("key", "", { session: true }) || recall("key", "");
    useKey(this.known);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.known = field.value.trim();
      useKey(this.known);
      keep("key", this.known, { session: true });
      keep("key", remember.checked ? this.known : undefined);
      form.hidden = true;
      given();
    });
  }

  ask() {
    this.form.hidden = false;
  }
}
