// Puts the page together: views, the connection, the state in the head.

import {Board} from './board.js';
import {Chat} from './chat.js';
import {Completion} from './completion.js';
import {el, icon} from './dom.js';
import {Experts} from './experts.js';
import {Feed} from './feed.js';
import {percent} from './format.js';
import {Run} from './run.js';
import {getJson} from './server.js';
import {theme} from './theme.js';

const byId = (id) => document.getElementById(id);
const model = {
  id: '',
  n_ctx: 0
};
const feed = new Feed();
const views = {};
let chat = null;

const STATES = {
  connecting: 'Connecting',
  open: 'Ready',
  gone: 'Server is gone, trying again',
  loading: 'Loading the model',
  draining: 'Server is shutting down',
  locked: 'Key needed',
  none: 'Ready, no live view',
  resting: 'Resting',
};

function showState() {
  byId('state').dataset.state = feed.state;
  const text = `${STATES[feed.state]}${
      feed.state === 'loading' && feed.progress > 0 ? `, ${percent(feed.progress, 1)}` : ''}`;
  if (byId('state-text').textContent !== text) byId('state-text').textContent = text;
  // Until the model is known there is nothing to write to.
  if (chat === null) {
    byId('view-chat')
        .replaceChildren(el('div', {class: 'column'}, el('div', {class: 'welcome'}, el('h1', {}, text))));
  }
  byId('key-button').hidden = feed.state !== 'locked';
}

function showTheme() {
  const button = byId('theme-button');
  const label = {auto: 'Theme: as the system has it', light: 'Theme: light', dark: 'Theme: dark'}[theme.name];
  button.setAttribute('aria-label', label);
  button.title = label;
  button.replaceChildren(icon({auto: 'auto', light: 'sun', dark: 'moon'}[theme.name]));
}

function showView() {
  const name = ['chat', 'experts', 'run'].find((view) => location.hash === `#${view}`) ?? 'chat';
  for (const view of ['chat', 'experts', 'run']) {
    byId(`view-${view}`).hidden = view !== name;
    if (views[view]) views[view].visible = view === name;
  }
  for (const tab of document.querySelectorAll('.tabs a')) {
    if (tab.dataset.view === name)
      tab.setAttribute('aria-current', 'page');
    else
      tab.removeAttribute('aria-current');
  }
  document.title = {chat: 'Sluice', experts: 'Experts – Sluice', run: 'Run – Sluice'}[name];
}

// Whether the model can chat: the server says so when the feed opens, or in its properties.
async function canChat() {
  if (feed.hello?.chat !== undefined) return feed.hello.chat;
  try {
    return Boolean((await getJson('/props')).chat_template);
  } catch {
    return true;
  }
}

async function meetModel() {
  try {
    const {data} = await getJson('/v1/models');
    model.id = data[0].id;
    model.n_ctx = data[0].meta?.n_ctx ?? 0;
  } catch {
    return;  // the feed's state says why
  }
  byId('model').textContent = model.id;
  const talks = await canChat();
  const kind = talks ? 'chat' : 'completion';
  if (chat?.kind === kind) {
    chat.view.refresh();
    return;
  }
  const place = byId('view-chat');
  place.replaceChildren();
  place.dataset.kind = kind;
  chat = {kind, view: talks ? new Chat(place, () => model) : new Completion(place, () => model)};
  document.querySelector('.tabs a[data-view=chat]').textContent = talks ? 'Chat' : 'Text';
}

const board = new Board(feed);
views.experts = new Experts(byId('view-experts'), board);
views.run = new Run(byId('view-run'), feed);
byId('theme-button').addEventListener('click', () => theme.next());
byId('key-button').addEventListener('click', () => feed.retry());
theme.addEventListener('change', showTheme);
feed.addEventListener('state', () => {
  showState();
  if (feed.state === 'none') meetModel();
});
feed.addEventListener('hello', meetModel);
addEventListener('hashchange', showView);
showTheme();
showState();
showView();
feed.start();
