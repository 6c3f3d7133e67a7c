// The server's key: asked for when a call is answered with 401, kept for this tab alone.

import {button, el} from './dom.js';
import {keep, ofTab} from './storage.js';

const KEY = 'sluice.key';
let asking = null;

export const currentKey = () => ofTab.getItem(KEY);

// Resolves to a key, or to null if the user gives none. Calls that come meanwhile share the one dialog.
export function askKey() {
  asking ??= show(currentKey() !== null).finally(() => {
    asking = null;
  });
  return asking;
}

function show(refused) {
  return new Promise((resolve) => {
    const input = el('input', {
      type: 'password',
      id: 'key',
      autocomplete: 'off',
      spellcheck: 'false',
      required: true,
      'aria-describedby': 'key-help'
    });
    const dialog =
        el('dialog', {class: 'sheet small', 'aria-labelledby': 'key-title'},
           el('form', {method: 'dialog'}, el('h2', {id: 'key-title'}, 'This server asks for a key'),
              el('p', {id: 'key-help', class: refused ? 'bad' : 'muted'},
                 refused ? 'The key was not accepted. Please enter another one.' :
                           'Whoever started the server has set it. It is kept until this tab is closed.'),
              el('label', {htmlFor: 'key'}, 'Key'), input,
              el('div', {class: 'row end'}, button('Cancel', {class: 'quiet'}, () => dialog.close('')),
                 el('button', {class: 'primary', type: 'submit', value: 'ok'}, 'Use key'))));
    dialog.addEventListener('close', () => {
      const key = dialog.returnValue === 'ok' ? input.value.trim() : '';
      dialog.remove();
      if (key !== '') keep(ofTab, KEY, key);
      resolve(key === '' ? null : key);
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}
