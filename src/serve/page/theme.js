// Light, dark, or as the system has it. This module runs before the first paint.

const ORDER = ['auto', 'light', 'dark'];
const KEY = 'sluice.theme';

function stored() {
  try {
    const name = localStorage.getItem(KEY);
    return ORDER.includes(name) ? name : 'auto';
  } catch {
    return 'auto';
  }
}

export const theme = new EventTarget();
theme.name = stored();
document.documentElement.dataset.theme = theme.name;

theme.next = () => {
  theme.name = ORDER[(ORDER.indexOf(theme.name) + 1) % ORDER.length];
  document.documentElement.dataset.theme = theme.name;
  try {
    localStorage.setItem(KEY, theme.name);
  } catch {
    // A browser without storage forgets the choice.
  }
  theme.dispatchEvent(new Event('change'));
};

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => theme.dispatchEvent(new Event('change')));
