// The text box for base models: the model continues what stands there.

import {answerStream} from './answer_stream.js';
import {announce, button, el} from './dom.js';
import {explain} from './server.js';
import {samplingFields, showSettings} from './settings.js';
import {statistics} from './statistics.js';
import {keep, lasting} from './storage.js';

const DRAFT = 'sluice.draft';
const TOKENS = 128;  // of one continuation, unless the settings say otherwise

export class Completion {
  #model;
  #controller = null;
  #made = [];  // where continuations begin, the last one last

  constructor(place, model) {
    this.#model = model;
    this.area = el('textarea', {
      id: 'text',
      'aria-label': 'Text',
      'aria-describedby': 'text-help',
      rows: '10',
      placeholder: 'Begin a text; the model goes on.',
      value: lasting.getItem(DRAFT) ?? ''
    });
    this.mirror = el('div', {class: 'mirror', 'aria-hidden': 'true'});
    this.go = button('Continue', {class: 'primary'}, () => (this.#controller ? this.stop() : this.run()));
    this.undo =
        button('Undo', {icon: 'undo', text: true, class: 'quiet', disabled: true}, () => this.#undo());
    this.again = button('Again', {icon: 'again', text: true, class: 'quiet', disabled: true}, () => {
      this.#undo();
      this.run();
    });
    this.phase = el('p', {class: 'phase', hidden: true});
    this.fault = el('p', {class: 'fault', role: 'alert', hidden: true});
    this.line = el('p', {class: 'statistics', hidden: true});
    place.append(el(
        'div', {class: 'completion'}, el('h1', {}, 'Continue a text'),
        el('p', {class: 'muted', id: 'text-help'},
           'This model has no chat template: it goes on with what you write. Ctrl+Enter continues, Esc stops.'),
        el('div', {class: 'paper'}, this.mirror, this.area),
        el('div', {class: 'row'}, this.go, this.again, this.undo,
           button('Settings', {icon: 'tune', class: 'quiet square'}, () => showSettings(false))),
        this.phase, this.fault, this.line));
    this.area.addEventListener('input', () => {
      this.#made = [];
      this.#changed();
    });
    this.area.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        if (this.#controller === null) this.run();
      } else if (event.key === 'Escape') {
        this.stop();
      }
    });
    this.#changed();
  }

  refresh() {}  // nothing here depends on which model it is

  stop() { this.#controller?.abort(); }

  async run() {
    const before = this.area.value;
    if (before === '') return;
    this.#controller = new AbortController();
    const {signal} = this.#controller;
    this.#made.push(before.length);
    this.#busy(true);
    const message = {content: ''};
    const body = {model: this.#model().id, prompt: before, max_tokens: TOKENS, ...samplingFields()};
    let frame = 0;
    const paint = () => {
      frame = 0;
      this.area.value = before + message.content;
      this.phase.hidden = message.content !== '';
      this.#changed();
    };
    this.fault.hidden = true;
    this.line.hidden = true;
    try {
      for await (const phase of answerStream('/v1/completions', body, message, signal)) {
        if (phase !== null) this.phase.textContent = phase;
        frame ||= requestAnimationFrame(paint);
      }
      announce(`Continued: ${message.content.slice(0, 600)}`);
    } catch (error) {
      this.fault.hidden = signal.aborted;
      this.fault.textContent = explain(error);
      if (signal.aborted) message.stopped = true;
    }
    cancelAnimationFrame(frame);
    paint();
    delete message.finish;  // a continuation always ends by its length
    const parts = statistics(message);
    this.line.hidden = parts.length === 0;
    this.line.replaceChildren(...parts.map((part) => el('span', {}, part)));
    this.#controller = null;
    this.#busy(false);
  }

  #busy(busy) {
    this.area.readOnly = busy;
    this.go.textContent = busy ? 'Stop' : 'Continue';
    this.phase.textContent = 'Waiting for the first token';
    this.phase.hidden = !busy;
    this.undo.disabled = busy || this.#made.length === 0;
    this.again.disabled = this.undo.disabled;
  }

  #undo() {
    this.area.value = this.area.value.slice(0, this.#made.pop());
    this.line.hidden = true;
    this.#busy(false);
    this.#changed();
  }

  // The mirror below the text marks what the model wrote last.
  #changed() {
    const text = this.area.value;
    const from = this.#made.at(-1) ?? text.length;
    this.mirror.replaceChildren(text.slice(0, from), el('mark', {}, text.slice(from)), '\u200b');
    if (this.#controller === null) this.undo.disabled = this.again.disabled = this.#made.length === 0;
    keep(lasting, DRAFT, text);
  }
}
