// What the browser keeps for this page. A browser that allows no storage forgets it when the page is closed.

class Memory {
  #entries = new Map();

  getItem(key) { return this.#entries.get(key) ?? null; }
  setItem(key, text) { this.#entries.set(key, text); }
  removeItem(key) { this.#entries.delete(key); }
  key(i) { return [...this.#entries.keys()][i] ?? null; }
  get length() { return this.#entries.size; }
}

function usable(name) {
  try {
    const found = window[name];
    found.getItem('sluice');
    return found;
  } catch {
    return new Memory();
  }
}

export const lasting = usable('localStorage');
export const ofTab = usable('sessionStorage');

// False if there is no room for it.
export function keep(storage, key, text) {
  try {
    storage.setItem(key, text);
    return true;
  } catch {
    return false;
  }
}
