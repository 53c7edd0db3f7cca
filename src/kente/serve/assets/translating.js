// Translating while someone types: wait for a pause, and call off what is no longer wanted.

import { patiently, translate } from "./server.js";

export class Translating {
  #timer = 0;
  #controller = new AbortController();

  /** `view` hears: begun(), part(request, sentence), waiting(trouble, seconds, go on), answered(request, answer), failed(trouble). */
  constructor(view) {
    this.view = view;
  }

  /** Calls off whatever waits or runs. */
  stop() {
    clearTimeout(this.#timer);
    this.#controller.abort();
  }

  /** Translates when nothing newer came for so many milliseconds. */
  soon(request, delay) {
    this.stop();
    this.#timer = setTimeout(() => this.now(request), delay);
  }

  async now(request) {
    this.stop();
    const controller = (this.#controller = new AbortController());
    const { signal } = controller;
    this.view.begun();
    try {
      const told = (sentence) => signal.aborted || this.view.part(request, sentence);
      const answer = await patiently(() => translate(request, signal, told), signal, this.view.waiting);
      if (!signal.aborted) this.view.answered(request, answer);
    } catch (trouble) {
      if (!signal.aborted) this.view.failed(trouble);
    }
  }
}
