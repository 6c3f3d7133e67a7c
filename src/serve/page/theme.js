// Light, dark, or as the system has it. This module runs before the first paint.

import {keep, lasting} from './storage.js';

const ORDER = ['auto', 'light', 'dark'];
const KEY = 'sluice.theme';

function stored() {
  const name = lasting.getItem(KEY);
  return ORDER.includes(name) ? name : 'auto';
}

export const theme = new EventTarget();
theme.name = stored();
document.documentElement.dataset.theme = theme.name;

theme.next = () => {
  theme.name = ORDER[(ORDER.indexOf(theme.name) + 1) % ORDER.length];
  document.documentElement.dataset.theme = theme.name;
  keep(lasting, KEY, theme.name);
  theme.dispatchEvent(new Event('change'));
};

matchMedia('(prefers-color-scheme: dark)')
    .addEventListener('change', () => theme.dispatchEvent(new Event('change')));
