// What the browser keeps. Where it refuses (a private window, storage full or forbidden) the page works and forgets.

const nameOf = (name) => `kente.${name}`;

const alike = (one, other) => typeof one === typeof other && one !== null && Array.isArray(one) === Array.isArray(other);

/** What was kept under a name, if it is of the same kind as `otherwise`, or else that; `session` keeps until the tab is closed. */
export function recall(name, otherwise, { session = false } = {}) {
  try {
    const value = JSON.parse((session ? sessionStorage : localStorage).getItem(nameOf(name)));
    return alike(value, otherwise) ? value : otherwise;
  } catch {
    return otherwise;
  }
}

/** Keeps a value, or forgets the name where the value is undefined; false where the browser refuses. */
export function keep(name, value, { session = false } = {}) {
  try {
    const store = session ? sessionStorage : localStorage;
    if (value === undefined) store.removeItem(nameOf(name));
    else store.setItem(nameOf(name), JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
