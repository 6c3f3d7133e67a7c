// A share from 0 to 1 as a thin bar.

import {el} from './dom.js';

export class Meter {
  #bar = el('i', {class: 'made'});

  constructor(name) {
    this.node =
        el('div', {
          class: 'track',
          role: 'meter',
          'aria-label': name,
          'aria-valuemin': '0',
          'aria-valuemax': '100',
          'aria-valuenow': '0'
        },
           this.#bar);
  }

  show(share) {
    const percent = Math.round(100 * Math.min(1, Math.max(0, share)));
    this.#bar.style.width = `${percent}%`;
    this.node.setAttribute('aria-valuenow', String(percent));
  }
}
