// The map of the experts on a canvas. Cells are copied from small pictures, each drawn once, into one buffer
// of pixels; only cells that look different from last time are touched.

import {LEVELS, Palette} from './palette.js';

const LEAST_CELL = 5;  // CSS pixels with the gap; what does not fit then scrolls
const MOST_CELL = 26;
const FLASH_MS = [140, 320];  // full, then fading
const STEP = (LEVELS - 1) / 255;

// Which part of a cell a state fills. F: all. Its two parts: S the left half, E the right one, C both with a
// gap between; slices lie above each other: msb the upper half, msb+lsb both with a gap. M: an outline where
// there is room, else a dot.
function covers(host, x, y, size) {
  const half = Math.floor((size - 1) / 2);
  const gap = size - 2 * half;
  switch (host) {
    case 4:
      return true;
    case 3:
      return x < half || x >= half + gap;
    case 2:
      return x < half;
    case 1:
      return x >= half + gap;
    case 5:
      return y < half;
    case 6:
      return y < half || y >= half + gap;
    default:
      return size < 5 ? x === half && y === half : x === 0 || y === 0 || x === size - 1 || y === size - 1;
  }
}

// The sides of a cell's frame by device state: all; left and right; above; above and below.
const FRAMES = [
  () => false, () => true, (x, y, last) => x === 0 || x === last, (x, y) => y === 0,
  (x, y, last) => y === 0 || y === last
];

export class Grid {
  pitch = 0;           // device pixels from cell to cell
  transposed = false;  // layers run to the right: better on narrow screens

  #board;
  #canvas;
  #context;
  #palette = null;
  #sprites = [];  // by state, level of heat and flash
  #image = null;
  #pixels = null;
  #drawn = new Uint32Array(0);
  #still = matchMedia('(prefers-reduced-motion: reduce)');

  constructor(canvas, board) {
    this.#canvas = canvas;
    this.#board = board;
    this.#context = canvas.getContext('2d', {alpha: false});
  }

  // Fits the map into `width` CSS pixels and draws all of it.
  layout(width) {
    const {layers, experts} = this.#board;
    if (layers === 0 || width <= 0) return;
    const scale = devicePixelRatio;
    this.transposed = width / experts < LEAST_CELL && layers < experts;
    const columns = this.transposed ? layers : experts;
    const rows = this.transposed ? experts : layers;
    const cell = Math.min(MOST_CELL, Math.max(LEAST_CELL, width / columns));
    this.pitch = Math.max(4, Math.floor(cell * scale));
    this.columns = columns;
    this.rows = rows;
    this.#canvas.width = columns * this.pitch;
    this.#canvas.height = rows * this.pitch;
    this.#canvas.style.width = `${this.#canvas.width / scale}px`;
    this.#canvas.style.height = `${this.#canvas.height / scale}px`;
    this.#image = this.#context.createImageData(this.#canvas.width, this.#canvas.height);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.recolour();
  }

  // Reads the colours again and draws all.
  recolour() {
    if (this.#image === null) return;
    this.#palette = new Palette();
    this.#sprites = [];
    this.#drawn = new Uint32Array(this.#board.state.length).fill(0xffffffff);
    this.#pixels.fill(this.#palette.ground);
    this.paint(performance.now());
  }

  // Draws what has changed; returns how many cells that were.
  paint(now) {
    const {state, heat, flashedAt} = this.#board;
    if (this.#image === null || this.#drawn.length !== state.length) return 0;
    const drawn = this.#drawn;
    const pixels = this.#pixels;
    const {width} = this.#canvas;
    const {pitch} = this;
    // Flashes that began later are full, fading; none where motion is unwanted.
    const full = this.#still.matches ? Infinity : now - FLASH_MS[0];
    const fading = this.#still.matches ? Infinity : now - FLASH_MS[1];
    let changed = 0;
    let top = this.rows;
    let bottom = -1;
    for (let i = 0; i < drawn.length; i += 1) {
      const flash = flashedAt[i] < fading ? 0 : flashedAt[i] < full ? 1 : 2;
      const look = state[i] | ((heat[i] * STEP + 0.5) << 8) | (flash << 12);
      if (look === drawn[i]) continue;
      drawn[i] = look;
      const [column, row] = this.#place(i);
      const sprite = this.#sprites[look] ?? this.#sprite(look);
      let to = row * pitch * width + column * pitch;
      for (let from = 0; from < sprite.length; from += pitch, to += width) {
        for (let x = 0; x < pitch; x += 1) pixels[to + x] = sprite[from + x];
      }
      if (row < top) top = row;
      if (row > bottom) bottom = row;
      changed += 1;
    }
    if (changed > 0) {
      this.#context.putImageData(
          this.#image, 0, 0, 0, top * this.pitch, this.#canvas.width, (bottom + 1 - top) * this.pitch);
    }
    return changed;
  }

  // The expert at a point in CSS pixels of the canvas, or -1.
  at(x, y) {
    const column = Math.floor((x * devicePixelRatio) / this.pitch);
    const row = Math.floor((y * devicePixelRatio) / this.pitch);
    if (column < 0 || row < 0 || column >= this.columns || row >= this.rows) return -1;
    return this.transposed ? column * this.#board.experts + row : row * this.#board.experts + column;
  }

  // Where expert `i` stands, in CSS pixels.
  box(i) {
    const [column, row] = this.#place(i);
    const size = this.pitch / devicePixelRatio;
    return {x: column * size, y: row * size, size};
  }

  // A picture of one state for the legend.
  legend(canvas, state, level) {
    const size = 16;
    canvas.width = canvas.height = size;
    const image = canvas.getContext('2d').createImageData(size, size);
    new Uint32Array(image.data.buffer).set(this.#draw(state, level, 0, size));
    canvas.getContext('2d').putImageData(image, 0, 0);
  }

  #place(i) {
    const layer = Math.floor(i / this.#board.experts);
    const expert = i % this.#board.experts;
    return this.transposed ? [layer, expert] : [expert, layer];
  }

  #sprite(look) {
    this.#sprites[look] = this.#draw(look & 255, (look >> 8) & 15, look >> 12, this.pitch);
    return this.#sprites[look];
  }

  // Pixels of a cell: a body, around it a frame where there is a device, and the gap to the next cells.
  #draw(state, level, flash, pitch) {
    const withDevice = this.#board.tiers.includes('device');
    const edge = withDevice ? (pitch >= 14 ? 2 : 1) : 0;
    const gap = pitch >= 12 && !withDevice ? 2 : 1;
    const outer = pitch - gap;
    const size = outer - 2 * edge;
    const fill = this.#palette.fill(state & 15, level, flash);
    const framed = FRAMES[state >> 4] ?? FRAMES[0];
    const pixels = new Uint32Array(pitch * pitch).fill(this.#palette.ground);
    for (let y = 0; y < outer; y += 1) {
      for (let x = 0; x < outer; x += 1) {
        const inside = x >= edge && y >= edge && x < edge + size && y < edge + size;
        if (inside && covers(state & 15, x - edge, y - edge, size))
          pixels[y * pitch + x] = fill;
        else if (inside)
          pixels[y * pitch + x] = this.#palette.cell;
        else if (framed(x, y, outer - 1) && (x === 0 || y === 0 || x === outer - 1 || y === outer - 1)) {
          pixels[y * pitch + x] = this.#palette.frame;
        }
      }
    }
    return pixels;
  }
}
