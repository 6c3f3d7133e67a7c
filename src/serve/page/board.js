// What is known of the experts: the snapshot of `/v1/experts`, kept up by `experts` events.

import {getJson} from './server.js';

export const HOST = ['M', 'E', 'S', 'C', 'F', 'msb', 'msb+lsb'];
export const DEVICE = ['none', 'full', 'packed', 'msb', 'msb+lsb'];

const HALF_LIFE_MS = 8000;
const ADDED = 64;        // heat of one use
const REFLASH_MS = 400;  // a cell does not flash twice within
const REST_MS = 1500;    // without a use: the run has come to rest

function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// Dispatches `shape` when layers, experts or tiers are others, `change` when experts have changed.
export class Board extends EventTarget {
  layers = 0;
  experts = 0;
  layerIds = [];
  tiers = [];
  bytesOf = {};
  sequence = -1;
  state = new Uint8Array(0);
  heat = new Float32Array(0);  // 0…255, as of `#cooledAt`
  uses = new Uint32Array(0);
  flashedAt = new Float64Array(0);
  countsAll = false;  // `uses` counts from the engine's start, not from this page's
  fault = null;

  #cooledAt = 0;
  #loading = null;
  #early = [];  // events that came while a snapshot was under way
  #rest = 0;    // timer

  constructor(feed) {
    super();
    feed.addEventListener('hello', () => this.load());
    feed.addEventListener('experts', (event) => this.#take(event.detail));
  }

  load() {
    clearTimeout(this.#rest);
    this.#loading ??= this.#fetch().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #fetch() {
    this.#early = [];
    const before = this.#shape();
    try {
      this.#set(await getJson('/v1/experts'));
      this.fault = null;
    } catch (error) {
      this.fault = error;
    }
    this.dispatchEvent(new Event(this.#shape() === before ? 'change' : 'shape'));
    const early = this.#early;
    this.#early = [];
    for (const event of early) this.#apply(event);
  }

  // Whatever a view is built for.
  #shape() {
    return JSON.stringify(
        [this.layers, this.experts, this.layerIds, this.tiers, this.bytesOf, this.fault?.message]);
  }

  #set(json) {
    const cells = json.layers * json.experts;
    const state = fromBase64(json.state);
    const heat = fromBase64(json.heat);
    if (state.length !== cells || heat.length !== cells) {
      throw new Error(`the snapshot has ${state.length} states and ${heat.length} heats of ${cells} experts`);
    }
    this.layers = json.layers;
    this.experts = json.experts;
    this.layerIds = json.layer_ids ?? [];
    this.tiers = json.tiers ?? ['host'];
    this.bytesOf = json.expert_bytes ?? {};
    this.sequence = json.sequence;
    this.state = state;
    this.heat = Float32Array.from(heat);
    this.countsAll = json.uses !== undefined;
    if (this.countsAll)
      this.uses = new Uint32Array(fromBase64(json.uses).buffer);
    else if (this.uses.length !== cells)
      this.uses = new Uint32Array(cells);
    if (this.flashedAt.length !== cells) this.flashedAt = new Float64Array(cells).fill(-Infinity);
    this.#cooledAt = performance.now();
  }

  #take(event) {
    if (this.#loading !== null)
      this.#early.push(event);
    else
      this.#apply(event);
  }

  #apply({sequence, set, used}) {
    if (sequence <= this.sequence) return;
    if (sequence !== this.sequence + 1) {
      this.load();
      return;
    }
    this.sequence = sequence;
    const now = performance.now();
    this.cool(now);
    for (const [i, state] of set) this.state[i] = state;
    for (const i of used) {
      this.heat[i] = Math.min(255, this.heat[i] + ADDED);
      this.uses[i] += 1;
      if (now - this.flashedAt[i] > REFLASH_MS) this.flashedAt[i] = now;
    }
    if (used.length > 0) {
      // Uses within a tenth of a second are counted once here, and each for itself by the engine.
      clearTimeout(this.#rest);
      this.#rest = setTimeout(() => {
        if (!document.hidden) this.load();
      }, REST_MS);
    }
    this.dispatchEvent(new Event('change'));
  }

  // Decays all heat up to `now`.
  cool(now) {
    const factor = 2 ** ((this.#cooledAt - now) / HALF_LIFE_MS);
    this.#cooledAt = now;
    for (let i = 0; i < this.heat.length; i += 1) this.heat[i] *= factor;
  }

  hostOf(i) { return HOST[this.state[i] & 15] ?? '?'; }

  deviceOf(i) { return DEVICE[this.state[i] >> 4] ?? '?'; }

  // Bytes of expert `i` in memory, on the host and on the device.
  bytesOfExpert(i) {
    return {host: this.bytesOf[this.hostOf(i)] ?? 0, device: this.bytesOf.device?.[this.deviceOf(i)] ?? 0};
  }

  nameOfLayer(row) { return this.layerIds[row] ?? row; }

  // {counts: {F: 3, …}, device: {full: 1, …}, uses, bytes} of a row.
  row(row) {
    const host = new Uint32Array(16);
    const there = new Uint32Array(16);
    let uses = 0;
    for (let i = row * this.experts; i < (row + 1) * this.experts; i += 1) {
      host[this.state[i] & 15] += 1;
      there[this.state[i] >> 4] += 1;
      uses += this.uses[i];
    }
    const counts = Object.fromEntries(HOST.map((name, state) => [name, host[state]]));
    const device = Object.fromEntries(DEVICE.map((name, state) => [name, there[state]]).slice(1));
    const sum = (numbers, sizes) =>
        Object.entries(numbers).reduce((all, [name, number]) => all + number * (sizes?.[name] ?? 0), 0);
    return {counts, device, uses, bytes: sum(counts, this.bytesOf) + sum(device, this.bytesOf.device)};
  }
}
