// The chat: the list of conversations, the messages of one, and the answer that is being made.

import {answerStream} from './answer_stream.js';
import {Composer} from './composer.js';
import {Conversation} from './conversation.js';
import {announce, button, el, toast} from './dom.js';
import {MessageView} from './message_view.js';
import {explain} from './server.js';
import {chatFields, settings, showSettings} from './settings.js';
import * as shelf from './shelf.js';
import {contextUsed} from './statistics.js';
import {keep, lasting} from './storage.js';

const OPEN = 'sluice.open';  // the conversation that is shown
const SAVE_MS = 1000;

export class Chat {
  #conversation = new Conversation();
  #views = new Map();  // message id → MessageView
  #running = null;     // {conversation, message, controller}
  #model;
  #stick = true;  // new text scrolls into sight

  // `model()` gives {id, n_ctx}.
  constructor(place, model) {
    this.#model = model;
    this.list = el('ul', {class: 'conversations'});
    const picker = el('input', {
      type: 'file',
      accept: 'application/json,.json',
      hidden: true,
      'aria-label': 'File to import',
      tabIndex: -1
    });
    picker.addEventListener('change', () => this.#readFile(picker));
    this.side =
        el('aside', {class: 'side', 'aria-label': 'Conversations'},
           button(
               'New conversation', {icon: 'plus', text: true, class: 'wide'},
               () => this.open(new Conversation())),
           el('nav', {'aria-label': 'Conversations'}, this.list),
           el('div', {class: 'row side-foot'},
              button('Export', {icon: 'export', text: true, class: 'quiet'}, () => this.#writeFile()),
              button('Import', {icon: 'import', text: true, class: 'quiet'}, () => picker.click()), picker));
    this.log =
        el('div', {class: 'log', role: 'log', 'aria-live': 'off', 'aria-label': 'Messages', tabindex: '0'});
    this.column = el('div', {class: 'column'});
    this.log.append(this.column);
    this.down =
        button('Go to the end', {icon: 'down', class: 'square down', hidden: true}, () => this.#toEnd());
    this.composer = new Composer(
        {send: (text) => this.send(text), stop: () => this.stop(), settings: () => showSettings(true)});
    this.toggle = button(
        'Conversations', {icon: 'list', text: true, class: 'quiet side-toggle', 'aria-expanded': 'false'},
        () => this.#showSide(!this.side.classList.contains('open')));
    this.shade = el('div', {class: 'shade', onclick: () => this.#showSide(false)});
    place.append(
        this.side, this.shade,
        el('div', {class: 'talk'}, this.toggle, this.log, this.down, this.composer.node));
    this.log.addEventListener('scroll', () => this.#scrolled());
    document.addEventListener('scroll', () => this.#scrolled());
    place.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      if (this.side.classList.contains('open'))
        this.#showSide(false);
      else
        this.stop();
    });
    addEventListener('pagehide', () => this.#saveRunning());
    addEventListener('storage', () => this.#showList());
    const last = lasting.getItem(OPEN);
    this.open((last && shelf.loadConversation(last)) ?? new Conversation(), false);
  }

  open(conversation, focus = true) {
    if (conversation === null) {
      toast('This conversation cannot be read.');
      return;
    }
    this.#conversation = conversation;
    keep(lasting, OPEN, conversation.id);
    this.#stick = true;
    this.#showSide(false);
    this.show();
    if (focus) this.composer.focus();
  }

  // Shows the conversation anew.
  show() {
    this.#views.clear();
    const path = this.#conversation.path();
    const nodes = path.map((message) => {
      const view = new MessageView(this.#conversation, message, this.#actions());
      this.#views.set(message.id, view);
      if (this.#running?.message === message) view.update({running: true, phase: this.#running.phase});
      return view.node;
    });
    this.column.replaceChildren(...(nodes.length > 0 ? nodes : [this.#welcome()]));
    this.#showList();
    this.#showContext();
    this.#toEnd();
  }

  // The model may be another one: the server has been started anew.
  refresh() {
    if (this.#views.size === 0) this.column.replaceChildren(this.#welcome());
    this.#showContext();
  }

  send(text) {
    if (this.#running !== null) return false;
    const parent = this.#conversation.path().at(-1) ?? null;
    this.#answer(this.#conversation.add(parent, {role: 'user', content: text}));
    return true;
  }

  stop() { this.#running?.controller.abort(); }

  #actions() {
    return {
      edit: (message, text) => {
        if (this.#busy()) return;
        this.#answer(
            this.#conversation.add(this.#conversation.parentOf(message), {role: 'user', content: text}));
      },
      again: (message) => {
        if (!this.#busy()) this.#answer(this.#conversation.parentOf(message));
      },
      choose: (message) => {
        this.#conversation.choose(message);
        shelf.saveConversation(this.#conversation);
        this.show();
        this.#views.get(message.id)?.node.querySelector('.branches button:not(:disabled)')?.focus();
      },
      result: (message, call, text) => {
        if (!this.#busy()) this.#giveResult(message, call, text);
      },
      answered: (message, call) =>
          this.#conversation.path().some((other) => other.role === 'tool' && other.tool_call_id === call.id),
    };
  }

  #busy() {
    if (this.#running !== null) toast('An answer is still being made: stop it first.');
    return this.#running !== null;
  }

  // When the last call of a message has its result, the model goes on.
  #giveResult(message, call, text) {
    const last = this.#conversation.path().at(-1);
    const result =
        this.#conversation.add(last, {role: 'tool', tool_call_id: call.id, name: call.name, content: text});
    const path = this.#conversation.path();
    const open = message.calls.filter(({id}) => !path.some((other) => other.tool_call_id === id));
    if (open.length === 0) {
      this.#answer(result);
    } else {
      shelf.saveConversation(this.#conversation);
      this.show();
    }
  }

  async #answer(question) {
    const conversation = this.#conversation;
    let body;
    try {
      body = {
        model: this.#model().id,
        messages: conversation.prompt(question, settings.system),
        ...chatFields()
      };
    } catch (error) {
      toast(error.message);
      return;
    }
    const message = conversation.add(question, {role: 'assistant'});
    const running = {conversation, message, controller: new AbortController(), phase: ''};
    this.#running = running;
    this.#stick = true;
    this.composer.set(true);
    this.show();
    let frame = 0;
    const paint = () => {
      frame = 0;
      if (this.#conversation !== conversation || this.#running !== running) return;
      this.#views.get(message.id)?.update({running: true, phase: running.phase});
      if (this.#stick) this.#toEnd();
    };
    let saved = performance.now();
    try {
      for await (
          const phase of answerStream('/v1/chat/completions', body, message, running.controller.signal)) {
        if (phase !== null) running.phase = phase;
        frame ||= document.hidden ? 0 : requestAnimationFrame(paint);
        if (performance.now() - saved > SAVE_MS) {
          shelf.saveConversation(conversation);
          saved = performance.now();
        }
      }
    } catch (error) {
      if (running.controller.signal.aborted)
        message.stopped = true;
      else
        message.error = explain(error);
    }
    cancelAnimationFrame(frame);
    this.#finish(running);
  }

  #finish({conversation, message}) {
    this.#running = null;
    this.composer.set(false);
    conversation.updated = Date.now();
    if (!shelf.saveConversation(conversation))
      toast('The browser has no room left: export conversations, then delete some.');
    if (message.error)
      announce(`The answer failed: ${message.error}`);
    else
      announce(
          message.stopped ? 'The answer was stopped.' :
                            `The answer is finished: ${message.content.slice(0, 600)}`);
    if (this.#conversation !== conversation) {
      this.#showList();
      return;
    }
    this.#views.get(message.id)?.update();
    this.#showList();
    this.#showContext();
    if (this.#stick) this.#toEnd();
  }

  #saveRunning() {
    if (this.#running !== null) shelf.saveConversation(this.#running.conversation);
  }

  #showContext() {
    const answers = this.#conversation.path().filter((message) => contextUsed(message) > 0);
    this.composer.showContext(answers.length > 0 ? contextUsed(answers.at(-1)) : 0, this.#model().n_ctx);
  }

  #showList() {
    const stored = shelf.listConversations();
    this.list.replaceChildren(...stored.map(({id, title}) => {
      const current = id === this.#conversation.id;
      const name = title || 'Untitled';
      return el(
          'li', {class: current ? 'current' : null},
          el('button', {
            type: 'button',
            class: 'open',
            'aria-current': current ? 'true' : null,
            onclick: () => this.open(
                this.#running?.conversation.id === id ? this.#running.conversation :
                                                        shelf.loadConversation(id))
          },
             name),
          button(`Delete “${name}”`, {icon: 'trash', class: 'quiet square'}, () => this.#remove(id, name)));
    }));
    if (stored.length === 0)
      this.list.append(el('li', {class: 'muted none'}, 'None yet. They stay in this browser.'));
  }

  #remove(id, name) {
    if (this.#running?.conversation.id === id) this.stop();
    const kept = shelf.loadConversation(id);
    shelf.removeConversation(id);
    if (id === this.#conversation.id)
      this.open(new Conversation());
    else
      this.#showList();
    const undo = button('Undo', {class: 'quiet'}, () => {
      shelf.saveConversation(kept);
      this.open(kept);
      toast('It is back.');
    });
    toast(el('span', {}, `“${name}” is deleted. `, kept === null ? null : undo));
  }

  #writeFile() {
    const address = URL.createObjectURL(new Blob([shelf.exportConversations()], {type: 'application/json'}));
    const link = el(
        'a', {href: address, download: `sluice-conversations-${new Date().toISOString().slice(0, 10)}.json`});
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  async #readFile(picker) {
    const [file] = picker.files;
    picker.value = '';
    if (file === undefined) return;
    try {
      const number = shelf.importConversations(await file.text());
      toast(number === 1 ? 'One conversation was imported.' : `${number} conversations were imported.`);
    } catch (error) {
      toast(error.message);
    }
    this.#showList();
  }

  #showSide(open) {
    this.side.classList.toggle('open', open);
    this.shade.classList.toggle('open', open);
    this.toggle.setAttribute('aria-expanded', String(open));
    if (open) this.side.querySelector('button').focus();
  }

  #welcome() {
    const {id} = this.#model();
    return el(
        'div', {class: 'welcome'}, el('h1', {}, id ? `Talk with ${id}` : 'Talk with the model'),
        el('p', {},
           'Enter sends, Shift+Enter begins a new line, Esc stops. Conversations stay in this browser.'));
  }

  // On low screens the page scrolls as a whole.
  #scroller() { return this.log.scrollHeight > this.log.clientHeight ? this.log : document.scrollingElement; }

  #scrolled() {
    const {scrollHeight, scrollTop, clientHeight} = this.#scroller();
    const gap = scrollHeight - scrollTop - clientHeight;
    this.#stick = gap < 40;
    this.down.hidden = gap < 200;
  }

  #toEnd() {
    this.#stick = true;
    const scroller = this.#scroller();
    scroller.scrollTop = scroller.scrollHeight;
  }
}
