// Elements, made without markup: no string of the server or of a user is ever read as HTML.

const PROPERTIES =
    new Set(['value', 'checked', 'disabled', 'hidden', 'readOnly', 'textContent', 'htmlFor', 'tabIndex']);

// `attributes`: `on…` are listeners, names of PROPERTIES are set as such, null and false are left out.
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || (value === false && !PROPERTIES.has(key))) continue;
    if (key.startsWith('on'))
      node.addEventListener(key.slice(2), value);
    else if (PROPERTIES.has(key))
      node[key] = value;
    else
      node.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children) {
    if (Array.isArray(child))
      node.append(...child.filter((inner) => inner !== null && inner !== false));
    else if (child !== null && child !== undefined && child !== false)
      node.append(child);
  }
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Strokes in a square of 24.
const ICONS = {
  send: 'M12 19V5M5.5 11.5 12 5l6.5 6.5',
  stop: 'M7 7h10v10H7z',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  edit: 'M4 20l1-4.5L16.5 4l3.5 3.5L8.5 19zM14 6.5l3.5 3.5',
  again: 'M20 11a8 8 0 1 0-2.5 6M20 5v6h-6',
  left: 'M15 5l-7 7 7 7',
  right: 'M9 5l7 7-7 7',
  plus: 'M12 5v14M5 12h14',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5',
  export: 'M12 15V4M7.5 8.5 12 4l4.5 4.5M5 14v6h14v-6',
  import: 'M12 4v11M7.5 10.5 12 15l4.5-4.5M5 14v6h14v-6',
  tune: 'M4 7h9M17 7h3M4 17h3M11 17h9M13 4.5v5M11 14.5v5M13 7h4M7 17h4',
  list: 'M4 6h16M4 12h16M4 18h10',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22' +
      'M5 5l1.7 1.7M17.3 17.3 19 19M5 19l1.7-1.7M17.3 6.7 19 5',
  moon: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z',
  auto: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  close: 'M6 6l12 12M18 6L6 18',
  undo: 'M8 5 4 9l4 4M4 9h10a5.5 5.5 0 0 1 0 11h-3',
  down: 'M12 5v14M5.5 12.5 12 19l6.5-6.5',
  tool: 'M14.5 6.5a4 4 0 0 1 5-1.5l-2.7 2.7 1.5 1.5L21 6.5a4 4 0 0 1-5.5 5L7 20l-3-3 8.5-8.5a4 4 0 0 1 2-2z',
};

export function icon(name) {
  return svg(
      'svg', {viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true'}, svg('path', {d: ICONS[name]}));
}

// A button whose name is its label, shown as text or as an icon with a tooltip.
export function button(label, {icon: shape, text = !shape, ...rest}, onclick) {
  return el(
      'button',
      {type: 'button', 'aria-label': text ? null : label, title: text ? null : label, onclick, ...rest},
      shape ? icon(shape) : null, text ? el('span', {}, label) : null);
}

let toastTimer = 0;

// A short remark at the lower edge, which goes away by itself.
export function toast(words) {
  const place = document.getElementById('toasts');
  place.replaceChildren(el('p', {}, words));
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => place.replaceChildren(), 5000);
}

// Reads `words` to users of a screen reader, once.
export function announce(words) {
  const place = document.getElementById('announcer');
  place.textContent = '';
  setTimeout(() => {
    place.textContent = words;
  }, 50);
}

// Copies `text`; browsers give the clipboard to https and localhost alone, so there is an older way too.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el('textarea', {class: 'unseen', value: text});
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  announce('Copied');
}

// A copy button that says for a moment that it has copied.
export function copyButton(label, textOf, attributes = {}) {
  const face = el('span', {}, 'Copy');
  return el(
      'button', {
        type: 'button',
        'aria-label': label,
        title: label,
        onclick: () => copyFrom(face, textOf()),
        ...attributes
      },
      icon('copy'), face);
}

// Copies `text`; `face` says so for a moment.
export async function copyFrom(face, text) {
  await copy(text);
  face.textContent = 'Copied';
  setTimeout(() => {
    face.textContent = 'Copy';
  }, 1500);
}
