// A small curve of the last minute.

import {svg} from './dom.js';

const POINTS = 120;  // two a second
const WIDTH = 120;
const HEIGHT = 32;

export class Sparkline {
  #values = [];
  #line = svg('polyline', {class: 'curve'});
  #area = svg('polygon', {class: 'area'});

  constructor() {
    this.node =
        svg('svg', {
          viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
          preserveAspectRatio: 'none',
          class: 'spark',
          'aria-hidden': 'true'
        },
            this.#area, this.#line);
  }

  // `most`: what the upper edge stands for; by default the highest value.
  push(value, most = 0) {
    this.#values.push(Number.isFinite(value) ? value : 0);
    if (this.#values.length > POINTS) this.#values.shift();
    const top = Math.max(most, ...this.#values, 1e-9);
    const first = POINTS - this.#values.length;
    const points = this.#values.map(
        (v, i) => `${(((first + i) * WIDTH) / (POINTS - 1)).toFixed(1)},${
            (HEIGHT - 1 - (v / top) * (HEIGHT - 3)).toFixed(1)}`);
    this.#line.setAttribute('points', points.join(' '));
    this.#area.setAttribute('points', [
      `${((first * WIDTH) / (POINTS - 1)).toFixed(1)},${HEIGHT}`, ...points, `${WIDTH},${HEIGHT}`
    ].join(' '));
  }
}
