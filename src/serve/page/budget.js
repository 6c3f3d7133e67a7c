// A budget as a bar of its accounts, with a list of now, peak and planned.

import {el} from './dom.js';
import {bytes, percent} from './format.js';
import {Meter} from './meter.js';

const ORDER = ['process', 'dense', 'experts', 'kv', 'activations', 'staging', 'tables', 'serve'];

export class Budget {
  #bar = el('div', {class: 'stack', role: 'img'});
  #body = el('tbody');
  #line = el('p', {class: 'muted'});
  #meters = [];
  #names = '';

  constructor(tier) {
    this.tier = tier;
    this.node =
        el('section', {class: 'panel budget', 'data-tier': tier, 'aria-label': `Memory of the ${tier}`},
           el('h2', {}, tier === 'host' ? 'Memory' : `Memory of the ${tier}`), this.#line, this.#bar,
           el('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': `Accounts of the ${tier}`},
              el('table', {},
                 el('thead', {},
                    el('tr', {},
                       ...['Account', 'Now', 'Peak', 'Planned', 'Of the plan'].map(
                           (head) => el('th', {scope: 'col'}, head)))),
                 this.#body)));
  }

  show({budget, used, limit, by_name: accounts}) {
    const known = Object.keys(accounts);
    const names =
        [...ORDER.filter((name) => known.includes(name)), ...known.filter((name) => !ORDER.includes(name))];
    if (names.join() !== this.#names) this.#build(names);
    const most = Math.max(budget, used);
    names.forEach((name, i) => {
      const {now, peak, planned} = accounts[name];
      const part = this.#bar.children[i];
      part.dataset.bytes = now;
      part.style.width = `${(100 * now) / most}%`;
      part.hidden = now === 0;
      const cells = this.#body.children[i].children;
      [bytes(now), bytes(peak), bytes(planned)].forEach((text, k) => {
        if (cells[k + 1].textContent !== text) cells[k + 1].textContent = text;
      });
      this.#meters[i].show(planned > 0 ? now / planned : 0);
    });
    const free = Math.max(0, budget - used);
    this.#line.textContent = `${bytes(used)} of ${bytes(budget)} used, ${bytes(free)} free` +
        `${limit > 0 ? `; the control group ends at ${bytes(limit)}` : ''}.`;
    this.#bar.setAttribute(
        'aria-label',
        `${percent(used, budget)} of the budget: ${
            names.map((name) => `${name} ${bytes(accounts[name].now)}`).join(', ')}`);
  }

  #build(names) {
    this.#names = names.join();
    const colour = (name, i) => `part p${ORDER.indexOf(name) >= 0 ? ORDER.indexOf(name) : 8 + (i % 2)}`;
    this.#bar.replaceChildren(
        ...names.map((name, i) => el('i', {class: colour(name, i), 'data-name': name, title: name})));
    this.#meters = names.map((name) => new Meter(`${name}, share of the plan`));
    this.#body.replaceChildren(...names.map(
        (name, i) => el(
            'tr', {},
            el('th', {scope: 'row'}, el('i', {class: `key ${colour(name, i)}`, 'aria-hidden': 'true'}), name),
            el('td'), el('td'), el('td'), el('td', {}, this.#meters[i].node))));
  }
}
