// Making parts of a page. Text from anywhere goes in as text, never as markup.

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Text of any language within a sentence of ours: a right-to-left word leaves its neighbours where they are. */
export const isolated = (text) => element("bdi", { textContent: text });

export const percent = (share) => `${Math.round(100 * share)} %`;

/** What a program says in passing, as the beginning of a sentence. */
export const capital = (text) => text.replace(/^\p{Ll}/u, (letter) => letter.toLocaleUpperCase("en"));
