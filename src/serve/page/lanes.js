// Requests that run or wait, one lane each.

import {el} from './dom.js';
import {percent, whole} from './format.js';

const WORDS = {
  queued: 'queued',
  prefill: 'reading',
  decode: 'answering',
  stalled: 'stalled'
};

export class Lanes {
  #list = el('ul', {class: 'lanes'});
  #none = el('p', {class: 'muted'}, 'No request at the moment.');
  #lanes = new Map();

  constructor() {
    this.node =
        el('section', {class: 'panel', 'aria-labelledby': 'lanes-title'},
           el('h2', {id: 'lanes-title'}, 'Requests'), this.#none, this.#list);
  }

  show(requests) {
    this.#none.hidden = requests.length > 0;
    this.#list.hidden = requests.length === 0;
    const ids = new Set(requests.map(({id}) => id));
    for (const [id, lane] of this.#lanes) {
      if (ids.has(id)) continue;
      lane.node.remove();
      this.#lanes.delete(id);
    }
    requests.forEach((request, i) => {
      let lane = this.#lanes.get(request.id);
      if (lane === undefined) {
        lane = makeLane(request.id);
        this.#lanes.set(request.id, lane);
      }
      if (this.#list.children[i] !== lane.node)
        this.#list.insertBefore(lane.node, this.#list.children[i] ?? null);
      fill(lane, request);
    });
  }
}

function makeLane(id) {
  const lane = {
    state: el('b', {}),
    words: el('span', {class: 'muted'}),
    cached: el('i', {class: 'cached'}),
    done: el('i', {class: 'done'}),
    made: el('i', {class: 'made'})
  };
  lane.prompt = el('div', {class: 'track', role: 'img'}, lane.cached, lane.done);
  lane.answer = el('div', {class: 'track', role: 'img'}, lane.made);
  lane.node = el('li', {}, el('p', {}, el('code', {}, id), lane.state, lane.words), lane.prompt, lane.answer);
  return lane;
}

const share = (part, all) => `${all > 0 ? Math.min(100, (100 * part) / all) : 0}%`;

function fill(lane, {state, prompt, cached, done, generated, max}) {
  lane.node.dataset.state = state;
  lane.state.textContent =
      state === 'prefill' ? `${WORDS[state]} ${percent(done, prompt)}` : WORDS[state] ?? state;
  lane.words.textContent = `${whole(prompt)} in${cached > 0 ? ` (${whole(cached)} kept)` : ''}, ${
      whole(generated)}${max > 0 ? ` of ${whole(max)}` : ''} out`;
  lane.cached.style.width = share(cached, prompt);
  lane.done.style.width = share(Math.max(0, done - cached), prompt);
  lane.prompt.setAttribute('aria-label', `Prompt: ${percent(done, prompt)} read`);
  // Without a bound the bar comes closer to its end, and never there.
  lane.made.style.width = max > 0 ? share(generated, max) : share(generated, generated + 256);
  lane.answer.setAttribute('aria-label', `Answer: ${whole(generated)} tokens`);
}
