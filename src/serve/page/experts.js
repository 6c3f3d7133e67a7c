// The view of the experts: the map, what stands under the pointer, and a table of the same numbers.

import {DEVICE, HOST} from './board.js';
import {el} from './dom.js';
import {bytes, count, percent, whole} from './format.js';
import {Grid} from './grid.js';
import {theme} from './theme.js';

const FRAME_MS = 100;
const TABLE_MS = 500;

const MEANINGS = {
  F: 'full: ready to compute with',
  C: 'compressed: both parts, to be decoded',
  S: 'signs and mantissas alone',
  E: 'exponents alone',
  M: 'missing: on disk',
  msb: 'the higher bits alone',
  'msb+lsb': 'both slices',
};
const SHOWN = ['F', 'C', 'S', 'E', 'msb+lsb', 'msb', 'M'];

export class Experts {
  #board;
  #grid;
  #visible = false;
  #chosen = -1;
  #pinned = false;  // chosen by keys: the pointer's leaving does not clear it
  #tableAt = 0;
  #rows = [];
  #columns = [];

  constructor(place, board) {
    this.#board = board;
    this.canvas = el('canvas', {
      id: 'map',
      tabindex: '0',
      role: 'application',
      'aria-roledescription': 'map',
      'aria-describedby': 'expert',
      'aria-label': 'Experts by layer. Arrow keys go from expert to expert.'
    });
    this.mark = el('div', {class: 'mark', hidden: true});
    this.wrap = el('div', {class: 'map'}, this.canvas, this.mark);
    this.detail = el('p', {class: 'detail', id: 'expert', 'aria-live': 'off'});
    this.legend = el('ul', {class: 'legend', 'aria-label': 'Legend'});
    this.axes = el('p', {class: 'muted axes'});
    this.summary = el('p', {class: 'lead'});
    this.table = el('table', {id: 'layers'});
    this.none = el('p', {class: 'note', hidden: true});
    this.shown = el(
        'div', {class: 'experts'},
        el('section', {class: 'panel map-panel', 'aria-labelledby': 'map-title'},
           el('h2', {id: 'map-title'}, 'Map'), this.axes, this.wrap, this.detail, this.legend),
        el('section', {class: 'panel', 'aria-labelledby': 'layers-title'},
           el('h2', {id: 'layers-title'}, 'Layers'),
           el('div', {class: 'table tall', tabindex: '0', role: 'region', 'aria-labelledby': 'layers-title'},
              this.table)));
    place.append(el('div', {class: 'page'}, el('h1', {}, 'Experts'), this.summary, this.none, this.shown));
    this.#grid = new Grid(this.canvas, board);
    board.addEventListener('shape', () => this.#shape());
    theme.addEventListener('change', () => this.#recolour());
    new ResizeObserver(() => this.#layout()).observe(this.wrap);
    this.canvas.addEventListener('pointermove', (event) => this.#point(event));
    this.canvas.addEventListener('pointerdown', (event) => this.#point(event));
    this.canvas.addEventListener('pointerleave', () => {
      if (!this.#pinned) this.#choose(-1);
    });
    this.canvas.addEventListener('keydown', (event) => this.#key(event));
    this.canvas.addEventListener('focus', () => {
      if (this.#chosen < 0) this.#choose(0, true);
    });
    this.canvas.addEventListener('blur', () => {
      if (this.#pinned) this.#choose(-1);
    });
    this.#describe();
  }

  set visible(visible) {
    if (visible === this.#visible) return;
    this.#visible = visible;
    if (!visible) return;
    this.#layout();
    const step = (now) => {
      if (!this.#visible) return;
      if (!document.hidden) this.#frame(now);
      setTimeout(() => requestAnimationFrame(step), FRAME_MS);
    };
    requestAnimationFrame(step);
  }

  #frame(now) {
    this.#board.cool(now);
    this.#grid.paint(now);
    if (now - this.#tableAt < TABLE_MS) return;
    this.#tableAt = now;
    this.#fillTable();
    this.#describe();
  }

  #shape() {
    const {fault} = this.#board;
    this.none.hidden = fault === null;
    this.shown.hidden = fault !== null;
    if (fault !== null) {
      this.none.textContent = `No map: ${fault.message}`;
      this.summary.textContent = '';
      return;
    }
    this.#buildTable();
    if (this.#visible) this.#layout();
  }

  #layout() {
    if (!this.#visible || this.#board.layers === 0) return;
    this.shown.classList.toggle('broad', this.#board.experts > 150);  // the table then stands below
    this.#grid.layout(this.wrap.clientWidth);
    this.axes.textContent = this.#grid.transposed ? 'Each column is a layer, each row an expert.' :
                                                    'Each row is a layer, each column an expert.';
    this.canvas.dataset.pitch = this.#grid.pitch;
    this.canvas.dataset.transposed = this.#grid.transposed;
    this.#buildLegend();
    this.#place();
  }

  #recolour() {
    if (!this.#visible) return;
    this.#grid.recolour();
    this.#buildLegend();
  }

  #states() {
    const possible = new Set(this.#board.state.map((state) => state & 15));
    for (const name of ['F', 'C', 'S', 'E', 'M', 'msb', 'msb+lsb']) {
      if (this.#board.bytesOf[name] !== undefined) possible.add(HOST.indexOf(name));
    }
    return SHOWN.filter((name) => possible.has(HOST.indexOf(name)));
  }

  #buildLegend() {
    const entries = this.#states().map((name) => {
      const canvas = el('canvas', {'aria-hidden': 'true'});
      this.#grid.legend(canvas, HOST.indexOf(name), 9);
      return el('li', {}, canvas, el('b', {}, name), ` ${MEANINGS[name]}`);
    });
    if (this.#board.tiers.includes('device')) {
      for (const [state, words] of [
               [1, 'frame: full on the device'], [2, 'left and right: packed'], [3, 'above: higher bits'],
               [4, 'above and below: both slices']]) {
        const key = ['full', 'packed', 'msb', 'msb+lsb'][state - 1];
        if (this.#board.bytesOf.device?.[key] === undefined) continue;
        const canvas = el('canvas', {'aria-hidden': 'true'});
        this.#grid.legend(canvas, state << 4, 0);
        entries.push(el('li', {}, canvas, words));
      }
    }
    this.legend.replaceChildren(
        ...entries, el('li', {class: 'muted'}, 'Stronger colour: used more of late. A flash: used now.'));
  }

  #buildTable() {
    this.#columns = this.#states();
    const device = this.#board.tiers.includes('device') ? ['Device'] : [];
    const heads = ['Layer', ...this.#columns, ...device, 'Uses', 'Bytes'];
    const row = (cell) =>
        el('tr', {}, ...heads.map((_, i) => (i === 0 ? el('th', {scope: 'row'}) : el('td'))));
    this.#rows = Array.from({length: this.#board.layers}, row);
    const foot = row();
    foot.className = 'sum';
    this.#rows.push(foot);
    this.table.replaceChildren(
        el('caption', {class: 'unseen'},
           'Experts of each layer by state, their uses, and their bytes in memory'),
        el('thead', {}, el('tr', {}, ...heads.map((head) => el('th', {scope: 'col'}, head)))),
        el('tbody', {}, ...this.#rows.slice(0, -1)), el('tfoot', {}, foot));
    this.#fillTable();
  }

  #fillTable() {
    const {layers, tiers} = this.#board;
    if (this.#rows.length !== layers + 1) return;
    const withDevice = tiers.includes('device');
    const sum = this.#columns.map(() => 0).concat(withDevice ? [0] : [], [0, 0]);
    for (let row = 0; row < layers; row += 1) {
      const {counts, device, uses, bytes: size} = this.#board.row(row);
      const there = Object.values(device).reduce((a, b) => a + b, 0);
      const numbers =
          [...this.#columns.map((name) => counts[name] ?? 0), ...(withDevice ? [there] : []), uses, size];
      numbers.forEach((number, i) => {
        sum[i] += number;
      });
      this.#fillRow(this.#rows[row], String(this.#board.nameOfLayer(row)), numbers);
    }
    this.#fillRow(this.#rows[layers], 'All', sum);
    const {experts} = this.#board;
    const missing = this.#columns.includes('M') ? sum[this.#columns.indexOf('M')] : 0;
    const words = `${count(layers, 'layer')} of ${count(experts, 'expert')}. ${
                      whole(layers * experts - missing)} of ${whole(layers * experts)}` +
        ` are in memory, wholly or in part: ${bytes(sum.at(-1))}.`;
    if (this.summary.textContent !== words) this.summary.textContent = words;
  }

  #fillRow(row, name, numbers) {
    const texts = [name, ...numbers.slice(0, -1).map(whole), bytes(numbers.at(-1))];
    texts.forEach((text, i) => {
      if (row.children[i].textContent !== text) row.children[i].textContent = text;
    });
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    const i = this.#grid.at(event.clientX - box.left, event.clientY - box.top);
    if (i >= 0) this.#choose(i);
  }

  #key(event) {
    const {experts, layers} = this.#board;
    const cells = experts * layers;
    if (cells === 0) return;
    const turned = this.#grid.transposed;
    const steps = {
      ArrowRight: turned ? experts : 1,
      ArrowLeft: turned ? -experts : -1,
      ArrowDown: turned ? 1 : experts,
      ArrowUp: turned ? -1 : -experts
    };
    let next = Math.max(0, this.#chosen);
    if (event.key in steps)
      next += steps[event.key];
    else if (event.key === 'Home')
      next = next - (next % experts);
    else if (event.key === 'End')
      next = next - (next % experts) + experts - 1;
    else if (event.key === 'Escape')
      next = -1;
    else
      return;
    event.preventDefault();
    if (next < cells) this.#choose(next < -1 ? this.#chosen : next, true);
  }

  #choose(i, pinned = false) {
    this.#chosen = i;
    this.#pinned = pinned && i >= 0;
    this.detail.setAttribute('aria-live', pinned ? 'polite' : 'off');
    this.#place();
    this.#describe();
  }

  #place() {
    this.mark.hidden = this.#chosen < 0 || this.#chosen >= this.#board.state.length;
    if (this.mark.hidden) return;
    const {x, y, size} = this.#grid.box(this.#chosen);
    this.mark.style.transform = `translate(${x}px, ${y}px)`;
    this.mark.style.width = this.mark.style.height = `${size}px`;
    if (this.#pinned) this.mark.scrollIntoView({block: 'nearest', inline: 'nearest'});
  }

  #describe() {
    const i = this.#chosen;
    if (i < 0 || i >= this.#board.state.length) {
      this.detail.textContent = 'Point at a cell, or go there with the arrow keys.';
      return;
    }
    const {experts} = this.#board;
    const host = this.#board.hostOf(i);
    const there = this.#board.deviceOf(i);
    const size = this.#board.bytesOfExpert(i);
    const words = [
      `Layer ${this.#board.nameOfLayer(Math.floor(i / experts))}, expert ${i % experts}`,
      `${host}, ${MEANINGS[host] ?? 'unknown'}`,
      there === 'none' ? null : `on the device: ${DEVICE[this.#board.state[i] >> 4]}`,
      `${count(this.#board.uses[i], 'use')}${this.#board.countsAll ? '' : ' since this page was opened'}`,
      `heat ${percent(this.#board.heat[i], 255)}`,
      `${bytes(size.host + size.device)} in memory`,
    ];
    const text = words.filter((word) => word !== null).join(' · ');
    if (this.detail.textContent !== text) this.detail.textContent = text;
  }
}
