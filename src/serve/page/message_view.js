// Messages as they are shown: questions, answers with their reasoning and tool calls, results of tools.

import {button, copyButton, el} from './dom.js';
import {GrowingMarkdown} from './markdown.js';
import {statistics} from './statistics.js';

// What a user may do: {edit, again, choose, result}. `view.update()` shows the message as it is now.
export class MessageView {
  #message;
  #actions;
  #parts = {};

  constructor(conversation, message, actions) {
    this.#message = message;
    this.#actions = actions;
    const who = {user: 'You', assistant: 'Model', tool: 'Tool'}[message.role];
    this.node = el('article', {class: `message ${message.role}`, 'aria-label': who, 'data-id': message.id});
    if (message.role === 'assistant')
      this.#buildAnswer(conversation);
    else if (message.role === 'tool')
      this.#buildResult();
    else
      this.#buildQuestion(conversation);
    this.update();
  }

  #branches(conversation) {
    const branches = conversation.branches(this.#message);
    if (branches.length < 2) return null;
    const at = branches.indexOf(this.#message);
    const go = (step) => () => this.#actions.choose(branches[at + step]);
    return el(
        'div', {class: 'branches', role: 'group', 'aria-label': 'Versions'},
        button('Earlier version', {icon: 'left', class: 'quiet square', disabled: at === 0}, go(-1)),
        el('span', {}, `${at + 1}/${branches.length}`),
        button(
            'Later version', {icon: 'right', class: 'quiet square', disabled: at === branches.length - 1},
            go(1)));
  }

  #buildQuestion(conversation) {
    this.#parts.text = el('div', {class: 'text'});
    this.node.append(
        this.#parts.text,
        el('div', {class: 'actions'}, this.#branches(conversation),
           copyButton('Copy the question', () => this.#message.content, {class: 'quiet'}),
           button('Edit', {icon: 'edit', text: true, class: 'quiet'}, () => this.#edit())));
  }

  #buildResult() {
    this.#parts.text = el('pre', {tabindex: '0', role: 'region', 'aria-label': 'Result'});
    this.node.append(
        el('p', {class: 'card-name'}, `Result of ${this.#message.name ?? 'the tool'}`), this.#parts.text);
  }

  #buildAnswer(conversation) {
    const parts = this.#parts;
    parts.reasoningText = el('div', {class: 'reasoning-text'});
    parts.reasoningName = el('summary', {}, 'Reasoning');
    parts.reasoning =
        el('details', {class: 'reasoning', hidden: true}, parts.reasoningName, parts.reasoningText);
    parts.phase = el('p', {class: 'phase', hidden: true});
    parts.body = el('div', {class: 'body'});
    parts.growing = new GrowingMarkdown(parts.body);
    parts.cards = el('div', {class: 'cards'});
    parts.error = el('p', {class: 'fault', role: 'alert', hidden: true});
    parts.statistics = el('p', {class: 'statistics', hidden: true});
    parts.actions =
        el('div', {class: 'actions'}, this.#branches(conversation),
           copyButton('Copy the answer', () => this.#message.content, {class: 'quiet'}),
           button(
               'Regenerate', {icon: 'again', text: true, class: 'quiet'},
               () => this.#actions.again(this.#message)));
    this.node.append(
        parts.reasoning, parts.phase, parts.body, parts.cards, parts.error, parts.statistics, parts.actions);
  }

  // `phase`: words of what the server does while nothing has come; `running`: more is to come.
  update({running = false, phase = ''} = {}) {
    const message = this.#message;
    const parts = this.#parts;
    if (message.role !== 'assistant') {
      parts.text.textContent = message.content;
      return;
    }
    this.node.classList.toggle('running', running);
    this.node.setAttribute('aria-busy', String(running));
    parts.reasoning.hidden = !message.reasoning;
    if (message.reasoning && parts.reasoningText.textContent !== message.reasoning) {
      parts.reasoningText.textContent = message.reasoning;
      const words = message.reasoning.trim().split(/\s+/).length;
      parts.reasoningName.textContent = `Reasoning, ${words} ${words === 1 ? 'word' : 'words'}`;
    }
    parts.growing.set(message.content);
    const empty = message.content === '' && !message.calls?.length;
    parts.phase.hidden = !running || !empty;
    const waits = message.reasoning ? 'Thinking' : phase || 'Waiting for the first token';
    if (parts.phase.textContent !== waits) parts.phase.textContent = waits;
    this.#updateCards(running);
    parts.error.hidden = !message.error;
    parts.error.textContent = message.error ?? '';
    const line = running ? [] : statistics(message);
    parts.statistics.hidden = line.length === 0;
    if (line.length > 0) parts.statistics.replaceChildren(...line.map((part) => el('span', {}, part)));
    parts.actions.hidden = running;
  }

  #updateCards(running) {
    const {calls = []} = this.#message;
    const cards = this.#parts.cards;
    calls.forEach((call, i) => {
      cards.children[i] ?? cards.append(this.#card(call));
      cards.children[i].querySelector('.card-name').textContent = call.name || 'Tool';
      const shown = prettyJson(call.arguments);
      const place = cards.children[i].querySelector('code');
      if (place.textContent !== shown) place.textContent = shown;
      const form = cards.children[i].querySelector('form');
      form.hidden = running || this.#actions.answered(this.#message, call);
    });
  }

  #card(call) {
    const input = el(
        'textarea', {rows: '1', 'aria-label': `Result of ${call.name || 'the tool'}`, placeholder: 'Result'});
    return el(
        'section', {class: 'card', 'aria-label': 'Tool call'}, el('p', {class: 'card-name'}),
        el('pre', {tabindex: '0', role: 'region', 'aria-label': 'Arguments'}, el('code')),
        el('form', {
          hidden: true,
          onsubmit: (event) => {
            event.preventDefault();
            this.#actions.result(this.#message, call, input.value);
          },
        },
           input, el('button', {type: 'submit'}, 'Give result')));
  }

  #edit() {
    const {text} = this.#parts;
    const area = el('textarea', {
      class: 'edit',
      'aria-label': 'Edit the question',
      value: this.#message.content,
      rows: String(Math.min(12, this.#message.content.split('\n').length + 1))
    });
    const close = () => {
      form.replaceWith(text);
      this.node.querySelector('.actions').hidden = false;
    };
    const send = () => {
      if (area.value.trim() === '') return;
      close();
      this.#actions.edit(this.#message, area.value);
    };
    area.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
        this.node.querySelector('.actions button:last-child').focus();
      } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    });
    const form =
        el('div', {class: 'edit-form'}, area,
           el('div', {class: 'row end'}, button('Cancel', {class: 'quiet'}, close),
              button('Send as a new branch', {class: 'primary'}, send)));
    text.replaceWith(form);
    this.node.querySelector('.actions').hidden = true;
    area.focus();
  }
}

function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
