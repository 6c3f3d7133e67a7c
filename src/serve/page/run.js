// The view of the running engine: speed, where a step's time goes, memory, requests, the plan.

import {Budget} from './budget.js';
import {el} from './dom.js';
import {duration, percent, rate, short, whole} from './format.js';
import {Lanes} from './lanes.js';
import {planWords} from './plan_words.js';
import {Sparkline} from './sparkline.js';

const PARTS = [
  ['wait', 'disk wait'], ['experts', 'experts'], ['attention', 'attention'], ['dense', 'other products'],
  ['sampling', 'sampling']
];
// What a server that does not count something leaves out.
const NOTHING = {
  t: 0,
  hits: 0,
  accesses: 0,
  demand: 0,
  memory: {}
};
const NOTHING_WITHIN = {
  tokens_per_s: {prefill: 0, decode: 0},
  prefetch: {useful: 0, late: 0, wasted: 0},
  disk: {bytes_per_s: 0, limit: 0},
};
const WINDOW = 20;  // `stats` events that rates are taken over: ten seconds

function wholeStats(stats) {
  const made = {...NOTHING, ...stats};
  for (const [name, members] of Object.entries(NOTHING_WITHIN)) made[name] = {...members, ...stats[name]};
  return made;
}

export class Run {
  #feed;
  #visible = false;
  #before = [];  // the last `stats` events
  #tiles;
  #budgets = new Map();

  constructor(place, feed) {
    this.#feed = feed;
    const tile = (name, help) => {
      const made = {
        value: el('b', {}, '–'),
        note: el('span', {class: 'muted'}, help),
        spark: new Sparkline()
      };
      made.node =
          el('section', {class: 'panel tile', 'aria-label': name}, el('h2', {}, name), made.value,
             made.spark.node, made.note);
      return made;
    };
    this.#tiles = {
      decode: tile('Answers', 'tokens a second'),
      prefill: tile('Prompts', 'tokens a second'),
      hits: tile('Hits', 'of the experts asked for'),
      disk: tile('Disk', ''),
    };
    this.split =
        el('div', {class: 'stack', role: 'img'},
           ...PARTS.map(([name], i) => el('i', {class: `part s${i}`, 'data-name': name})));
    this.times =
        el('ul', {class: 'keys'},
           ...PARTS.map(
               ([, label], i) =>
                   el('li', {}, el('i', {class: `key part s${i}`, 'aria-hidden': 'true'}),
                      el('span', {}, label), ' ', el('b', {}, '–'))));
    this.step = el('p', {class: 'muted'}, 'No answer has been made yet.');
    this.ahead = el('dl', {class: 'facts'});
    this.budgets = el('div', {class: 'budgets'});
    this.lanes = new Lanes();
    this.plan = el('ul', {class: 'plan'});
    place.append(
        el('div', {class: 'page'}, el('h1', {}, 'Run'),
           el('div', {class: 'tiles'}, ...Object.values(this.#tiles).map(({node}) => node)),
           el('div', {class: 'halves'},
              el('section', {class: 'panel', 'aria-labelledby': 'step-title'},
                 el('h2', {id: 'step-title'}, 'A step of answering'), this.step, this.split, this.times,
                 this.ahead),
              this.lanes.node),
           this.budgets,
           el('section', {class: 'panel', 'aria-labelledby': 'plan-title'},
              el('h2', {id: 'plan-title'}, 'The plan'), this.plan)));
    feed.addEventListener('stats', ({detail}) => {
      this.#push(this.#rested(wholeStats(detail)));
      if (this.#visible) this.#showStats(this.#before.at(-1));
    });
    feed.addEventListener('requests', ({detail}) => {
      if (this.#visible) this.lanes.show(detail);
    });
    feed.addEventListener('plan', () => {
      if (this.#visible) this.#showPlan();
    });
    this.lanes.show([]);
  }

  set visible(visible) {
    if (visible === this.#visible) return;
    this.#visible = visible;
    if (!visible) return;
    if (this.#before.length > 0) this.#showStats(this.#before.at(-1));
    this.lanes.show(this.#feed.last.get('requests') ?? []);
    this.#showPlan();
  }

  // An engine with nothing to do says the same again; its last speed is not its speed now.
  #rested(stats) {
    const same = this.#before.at(-1)?.t === stats.t;
    if (!same || this.#feed.last.get('requests')?.length > 0) return stats;
    return {...stats, tokens_per_s: NOTHING_WITHIN.tokens_per_s, disk: {...stats.disk, bytes_per_s: 0}};
  }

  #push(stats) {
    if (this.#before.length > 0 && stats.t < this.#before.at(-1).t)
      this.#before = [];  // another start of the server
    this.#before.push(stats);
    if (this.#before.length > WINDOW) this.#before.shift();
    const {decode, prefill, hits, disk} = this.#tiles;
    decode.spark.push(stats.tokens_per_s.decode);
    prefill.spark.push(stats.tokens_per_s.prefill);
    hits.spark.push(this.#recent(stats, 'hits') / Math.max(1, this.#recent(stats, 'accesses')), 1);
    disk.spark.push(stats.disk.bytes_per_s, stats.disk.limit);
  }

  // By how much a counter has grown of late.
  #recent(stats, name) { return stats[name] - this.#before[0][name]; }

  #showStats(stats) {
    const {decode, prefill, hits, disk} = this.#tiles;
    decode.value.textContent = short(stats.tokens_per_s.decode);
    prefill.value.textContent = short(stats.tokens_per_s.prefill);
    const recent = this.#recent(stats, 'accesses');
    hits.value.textContent =
        recent > 0 ? percent(this.#recent(stats, 'hits'), recent) : percent(stats.hits, stats.accesses);
    hits.note.textContent =
        `of the experts asked for; ${percent(stats.hits, stats.accesses)} since the start`;
    disk.value.textContent = rate(stats.disk.bytes_per_s);
    disk.note.textContent = stats.disk.limit > 0 ?
        `${percent(stats.disk.bytes_per_s, stats.disk.limit)} of the measured ${rate(stats.disk.limit)}` :
        'read from disk';
    this.#showStep(stats.step_ms);
    this.#showFacts(stats);
    this.#showBudgets(stats.memory);
  }

  #showStep(step) {
    const values = PARTS.map(([name]) => step?.[name] ?? 0);
    const sum = values.reduce((a, b) => a + b, 0);
    if (sum === 0) return;
    // A server that cannot tell attention from other products says 0 of it.
    const labels =
        PARTS.map(([name, label]) => (name === 'dense' && !step.attention ? 'everything else' : label));
    this.step.textContent = `${duration(sum)} a step, in which every answer gets a token.`;
    values.forEach((value, i) => {
      this.split.children[i].style.width = `${(100 * value) / sum}%`;
      this.times.children[i].hidden = value === 0;
      this.times.children[i].querySelector('span').textContent = labels[i];
      this.times.children[i].querySelector('b').textContent = `${duration(value)}, ${percent(value, sum)}`;
    });
    this.split.setAttribute(
        'aria-label', labels.map((label, i) => `${label} ${percent(values[i], sum)}`).join(', '));
  }

  #showFacts({demand, accesses, prefetch}) {
    const ahead = prefetch.useful + prefetch.late + prefetch.wasted;
    const facts = [
      [
        'Sharing',
        accesses > 0 ? `${(demand / accesses).toFixed(2)} answers use an expert that is fetched once` : '–'
      ],
      [
        'Read ahead',
        ahead > 0 ? `${percent(prefetch.useful, ahead)} in time, ${percent(prefetch.late, ahead)} late, ${
                        percent(prefetch.wasted, ahead)} in vain` :
                    'nothing yet'
      ],
      ['Experts asked for', whole(accesses)],
    ];
    this.ahead.replaceChildren(
        ...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
  }

  #showBudgets(memory) {
    for (const tier of Object.keys(memory)) {
      if (!this.#budgets.has(tier)) {
        this.#budgets.set(tier, new Budget(tier));
        this.budgets.append(this.#budgets.get(tier).node);
      }
      this.#budgets.get(tier).show(memory[tier]);
    }
  }

  #showPlan() {
    const plan = this.#feed.last.get('plan');
    const words =
        plan === undefined ? ['The plan is not here yet.'] : planWords(plan, this.#feed.hello?.limits);
    this.plan.replaceChildren(...words.map((sentence) => el('li', {}, sentence)));
  }
}
