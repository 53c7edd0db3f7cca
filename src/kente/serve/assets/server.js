// Talking to the server: requests that can be called off, answers that come in parts, and trouble in plain words.

import { capital } from "./dom.js";

const AT_ONCE = 400; // characters; a longer text is shown sentence by sentence as it is translated
const LONGEST_WAIT = 60; // seconds

/** Something went wrong. `wait`: seconds after which trying again makes sense, or null. `key`: the server wants another key. */
export class Trouble extends Error {
  constructor(message, { wait = null, key = false } = {}) {
    super(capital(message));
    this.wait = wait;
    this.key = key;
  }
}

let key = "";
export const useKey = (given) => (key = given);

/** Seconds from a Retry-After header: a number, or a date. */
export function retryAfter(header, now = Date.now()) {
  if (!header) return null;
  const seconds = /^\s*\d+\s*$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(0, Math.ceil(seconds));
}

const PASSING = {
  429: "The server asks us to slow down.",
  502: "The server cannot be reached.",
  503: "The server is busy.",
};
const LASTING = {
  404: "The server does not know this request. Reloading the page may help.",
  413: "This is too long for the server. Try a part of it.",
  504: "This took the server too long. Try a shorter text.",
};

async function troubleOf(response) {
  const { status } = response;
  const said = await response.json().then((body) => body.error, () => null);
  const wait = retryAfter(response.headers.get("Retry-After"));
  // a proxy in front of the server says 502 or 503 in its own way, with neither a reason nor a time
  if (status in PASSING && (wait !== null || !said)) return new Trouble(PASSING[status], { wait: wait ?? 1 });
  const message = String(said || LASTING[status] || `The server answered ${status}, which this page did not expect.`);
  return new Trouble(message, { key: status === 401 || status === 403 || (status === 400 && /api.?key/i.test(message)) });
}

const unreachable = () =>
  new Trouble(navigator.onLine ? "The server cannot be reached. Is it still running?" : "This device is offline.", { wait: 2 });

/** A failed connection in plain words; whatever else went wrong as it is. */
const inPlainWords = (error) => (error instanceof TypeError ? unreachable() : error);

async function ask(path, options = {}) {
  const response = await fetch(path, options).catch((error) => Promise.reject(inPlainWords(error)));
  if (!response.ok) throw await troubleOf(response);
  return response;
}

/** POSTs an object as JSON or a form as it is, with the key where there is one. */
function post(path, body, signal) {
  if (body instanceof FormData) {
    if (key) body.set("api_key", key);
    return ask(path, { method: "POST", body, signal });
  }
  const text = JSON.stringify(key ? { ...body, api_key: key } : body);
  return ask(path, { method: "POST", body: text, headers: { "Content-Type": "application/json" }, signal });
}

async function read(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error instanceof SyntaxError) throw new Trouble("The server's answer could not be read.");
    throw inPlainWords(error);
  }
}

/** [name, data] for each server-sent event of an answer, as it arrives. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const lines = block.split(/\r?\n/);
        const field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""));
        const data = field("data").join("\n");
        if (data) yield [field("event")[0] ?? "message", JSON.parse(data)];
      }
    }
  } catch (error) {
    throw inPlainWords(error);
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The data of the event `done`; `told(name, data)` hears of those before it. */
async function lastOf(response, told) {
  for await (const [name, data] of events(response)) {
    if (name === "done") return data;
    if (name === "error") throw new Trouble(String(data.error));
    told(name, data);
  }
  throw new Trouble("The server's answer broke off.", { wait: 2 });
}

export const settings = async () => read(await ask("frontend/settings"));
export const languages = async () => read(await ask("languages"));

/** One translation with its words; `told(sentence)` hears of each sentence of a long text. */
export async function translate(request, signal, told) {
  const whole =
    request.q.length <= AT_ONCE
      ? await read(await post("v1/translate", request, signal))
      : await lastOf(await post("v1/stream", request, signal), (name, data) => name === "sentence" && told(data));
  return { ...whole.translations[0], engine: whole.engine, milliseconds: whole.milliseconds };
}

/** {url, name} of a translated file; `told(done, of)` hears how far it is. */
export async function translateFile(file, source, target, signal, told) {
  const form = new FormData();
  form.set("source", source);
  form.set("target", target);
  form.set("file", file);
  return lastOf(await post("v1/file", form, signal), (name, data) => name === "progress" && told(data.done, data.of));
}

/** Hands a better translation `s` of `q` to whoever trains next. */
export const suggest = (pair, signal) => post("suggest", pair, signal);

/** Opens the explorer without the key standing in an address. */
export function openWithKey(path, fields) {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: path, hidden: true });
  for (const [name, value] of Object.entries({ ...fields, api_key: key })) {
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  }
  document.body.append(form);
  form.submit();
  form.remove();
}

/** Waits; over at once when called off, told to go on, or back online. */
function pause(seconds, signal, told) {
  return new Promise((resolve, reject) => {
    let left = seconds;
    const finish = (end) => () => {
      clearInterval(clock);
      removeEventListener("online", goOn);
      signal.removeEventListener("abort", giveUp);
      end(signal.reason);
    };
    const goOn = finish(() => resolve());
    const giveUp = finish(reject);
    const clock = setInterval(() => (--left <= 0 ? goOn() : told(left, goOn)), 1000);
    addEventListener("online", goOn);
    signal.addEventListener("abort", giveUp);
    told(left, goOn);
  });
}

/** Does `task`, and again after trouble that passes by itself; `waiting(trouble, seconds left, go on)` hears of it each second. */
export async function patiently(task, signal, waiting) {
  for (let shortest = 1; ; shortest = Math.min(2 * shortest, LONGEST_WAIT)) {
    try {
      return await task();
    } catch (trouble) {
      signal.throwIfAborted();
      if (!(trouble instanceof Trouble) || trouble.wait === null) throw trouble;
      await pause(Math.max(trouble.wait, shortest), signal, (left, goOn) => waiting(trouble, left, goOn));
    }
  }
}
