// The box where a message is written, with its send and stop button and the context that is used.

import {button, el} from './dom.js';
import {whole} from './format.js';
import {Meter} from './meter.js';

// `actions`: {send(text), stop(), settings()}.
export class Composer {
  constructor(actions) {
    this.actions = actions;
    this.running = false;
    this.area = el('textarea', {
      id: 'question',
      rows: '1',
      placeholder: 'Ask something',
      'aria-label': 'Message',
      enterkeyhint: 'send',
      'aria-keyshortcuts': 'Enter'
    });
    this.act = button('Send', {icon: 'send', class: 'primary square act'}, () => this.#act());
    this.meter = new Meter('Context used');
    this.used = el('span', {});
    this.context = el('p', {class: 'context', hidden: true}, this.meter.node, this.used);
    this.node =
        el('form', {
          class: 'composer',
          onsubmit: (event) => {
            event.preventDefault();
            this.#act();
          }
        },
           el('div', {class: 'box'}, this.area,
              el('div', {class: 'box-row'},
                 button('Settings', {icon: 'tune', class: 'quiet square'}, () => this.actions.settings()),
                 this.context, this.act)));
    this.area.addEventListener('input', () => this.#fit());
    this.area.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.running) this.#act();
    });
  }

  focus() { this.area.focus({preventScroll: true}); }

  set(running) {
    this.running = running;
    const label = running ? 'Stop' : 'Send';
    const fresh =
        button(label, {icon: running ? 'stop' : 'send', class: 'primary square act'}, () => this.#act());
    this.act.setAttribute('aria-label', label);
    this.act.title = running ? 'Stop (Esc)' : 'Send (Enter)';
    this.act.replaceChildren(...fresh.children);
    this.act.classList.toggle('stop', running);
  }

  showContext(used, all) {
    this.context.hidden = !(used > 0 && all > 0);
    if (this.context.hidden) return;
    this.meter.show(used / all);
    this.meter.node.classList.toggle('nearly', used > 0.9 * all);
    this.used.textContent = `Context: ${whole(used)} of ${whole(all)}`;
  }

  #act() {
    if (this.running) {
      this.actions.stop();
      return;
    }
    const text = this.area.value;
    if (text.trim() === '') return;
    if (this.actions.send(text)) this.area.value = '';
    this.#fit();
  }

  #fit() {
    this.area.style.height = 'auto';
    this.area.style.height = `${Math.min(this.area.scrollHeight, 240)}px`;
  }
}
