// Colours of the experts' map, from the style sheet: each state has one for cold and one for hot experts,
// between which use mixes.

const NAMES = [
  'm', 'e', 's', 'c', 'f', 'e', 'f'
];                         // by host state; slices have the colours of E and F, and shapes of their own
export const LEVELS = 16;  // steps of heat that are drawn

function channels(name) {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  return [r, g, b];
}

// A pixel as ImageData has it, in the byte order of this machine: little-endian on all that browsers run on.
const pixel = ([r, g, b]) =>
    ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;

const mix = (from, to, share) => from.map((value, i) => value + (to[i] - value) * share);

export class Palette {
  constructor() {
    const grounds =
        ['m', 'e', 's', 'c', 'f'].map((name) => [name, [channels(`cold-${name}`), channels(`hot-${name}`)]]);
    const byName = Object.fromEntries(grounds);
    this.flash = channels('flash');
    this.ground = pixel(channels('map'));
    this.cell = pixel(channels('cell'));
    this.frame = pixel(channels('frame'));
    this.fills = NAMES.map(
        (name) => Array.from({length: LEVELS}, (_, level) => mix(...byName[name], level / (LEVELS - 1))));
  }

  // `flash`: 0 none, 1 fading, 2 full.
  fill(host, level, flash) {
    return pixel(mix(this.fills[host]?.[level] ?? this.fills[0][level], this.flash, flash / 2));
  }
}
