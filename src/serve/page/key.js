// The server's key: asked for when a call is answered with 401, kept for this tab alone.

import { el, button } from './dom.js';

const KEY = 'sluice.key';
let asking = null;

export function currentKey() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(key) {
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // Without storage the key is asked for again.
  }
}

// Resolves to a key, or to null if the user gives none. Calls that come meanwhile share the one dialog.
export function askKey() {
  asking ??= show(currentKey() !== null).finally(() => { asking = null; });
  return asking;
}

function show(refused) {
  return new Promise((resolve) => {
    const input = el('input', { type: 'password', id: 'key', autocomplete: 'off', spellcheck: 'false', required: true,
      'aria-describedby': 'key-help' });
    const dialog = el('dialog', { class: 'sheet small', 'aria-labelledby': 'key-title' },
      el('form', { method: 'dialog' },
        el('h2', { id: 'key-title' }, 'This server asks for a key'),
        el('p', { id: 'key-help', class: refused ? 'bad' : 'muted' }, refused
          ? 'The key was not accepted. Please enter another one.'
          : 'It is the one that the server was started with (--api-key). It stays in this tab and is forgotten when the tab is closed.'),
        el('label', { for: 'key' }, 'Key'), input,
        el('div', { class: 'row end' },
          button('Cancel', { class: 'quiet' }, () => dialog.close('')),
          el('button', { class: 'primary', type: 'submit', value: 'ok' }, 'Use key'))));
    dialog.addEventListener('close', () => {
      const key = dialog.returnValue === 'ok' ? input.value.trim() : '';
      dialog.remove();
      if (key !== '') keep(key);
      resolve(key === '' ? null : key);
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}
