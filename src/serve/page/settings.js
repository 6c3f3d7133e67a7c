// How answers are made: kept in the browser, shown as a form. An empty field leaves the choice to the model.

import {button, el} from './dom.js';
import {keep, lasting} from './storage.js';

const KEY = 'sluice.settings';

const NUMBERS = [
  {
    name: 'temperature',
    label: 'Temperature',
    min: 0,
    max: 2,
    step: 0.05,
    help: '0 takes the likeliest token each time'
  },
  {
    name: 'top_p',
    label: 'Top-p',
    min: 0.01,
    max: 1,
    step: 0.01,
    help: 'only the likeliest tokens that reach this share'
  },
  {
    name: 'top_k',
    label: 'Top-k',
    min: 0,
    max: 2147483647,
    step: 1,
    help: 'only so many of the likeliest; 0: all'
  },
  {
    name: 'seed',
    label: 'Seed',
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    step: 1,
    help: 'the same seed gives the same answer'
  },
  {
    name: 'max_tokens',
    label: 'Most tokens',
    min: 1,
    max: 1048576,
    step: 1,
    help: 'of one answer; empty: as many as fit'
  },
];

const EMPTY = {
  temperature: null,
  top_p: null,
  top_k: null,
  seed: null,
  max_tokens: null,
  system: '',
  thinking: 'auto',
  tools: ''
};

function load() {
  const settings = {...EMPTY};
  try {
    const json = JSON.parse(lasting.getItem(KEY)) ?? {};
    for (const {name} of NUMBERS) {
      if (typeof json[name] === 'number') settings[name] = json[name];
    }
    for (const name of ['system', 'tools']) {
      if (typeof json[name] === 'string') settings[name] = json[name];
    }
    if (['on', 'off'].includes(json.thinking)) settings.thinking = json.thinking;
  } catch {
    // What cannot be read is as if nothing were set.
  }
  return settings;
}

export const settings = load();

const store = () => keep(lasting, KEY, JSON.stringify(settings));

// Fields of a request for a completion.
export function samplingFields() {
  return Object.fromEntries(
      NUMBERS.filter(({name}) => settings[name] !== null).map(({name}) => [name, settings[name]]));
}

// Fields of a request for a chat.
export function chatFields() {
  const fields = samplingFields();
  if (settings.thinking !== 'auto')
    fields.chat_template_kwargs = {enable_thinking: settings.thinking === 'on'};
  if (settings.tools.trim() !== '') fields.tools = JSON.parse(settings.tools);
  return fields;
}

function toolsFault(text) {
  if (text.trim() === '') return '';
  try {
    return Array.isArray(JSON.parse(text)) ? '' :
                                             'Tools must be a list: [{"type":"function","function":{…}}]';
  } catch (error) {
    return `Tools are not JSON: ${error.message}`;
  }
}

// The dialog; `chat` false leaves out what only a chat has.
export function showSettings(chat) {
  const inputs = new Map();
  const rows = NUMBERS.map(({name, label, min, max, step, help}) => {
    const input = el('input', {
      id: `set-${name}`,
      type: 'number',
      min,
      max,
      step: step < 1 ? 'any' : step,
      inputmode: 'decimal',
      value: settings[name] ?? '',
      placeholder: name === 'seed' ? 'random' : 'model’s own',
      'aria-describedby': `help-${name}`
    });
    inputs.set(name, input);
    return el(
        'div', {class: 'field'}, el('label', {htmlFor: `set-${name}`}, label), input,
        el('p', {id: `help-${name}`, class: 'muted'}, help));
  });
  const system = el('textarea', {id: 'set-system', rows: '4', value: settings.system});
  const thinking =
      el('select', {id: 'set-thinking'},
         ...[['auto', 'As the model has it'], ['on', 'On'], ['off', 'Off']].map(
             ([value, label]) => el('option', {value}, label)));
  thinking.value = settings.thinking;
  const tools = el('textarea', {
    id: 'set-tools',
    rows: '5',
    value: settings.tools,
    spellcheck: 'false',
    class: 'mono',
    'aria-describedby': 'help-tools'
  });
  tools.addEventListener('input', () => tools.setCustomValidity(toolsFault(tools.value)));
  const chatRows = chat ?
      [
        el('div', {class: 'field wide'}, el('label', {htmlFor: 'set-system'}, 'System prompt'), system),
        el('div', {class: 'field wide'}, el('label', {htmlFor: 'set-thinking'}, 'Thinking'), thinking),
      ] :
      [];
  const toolRows = chat ? [el('details', {class: 'wide'}, el('summary', {}, 'Tools'),
                              el('label', {htmlFor: 'set-tools'}, 'Definitions as JSON'), tools,
                              el('p', {id: 'help-tools', class: 'muted'},
                                 'The model may call them; you write the results yourself.'))] :
                          [];
  const dialog =
      el('dialog', {class: 'sheet', 'aria-labelledby': 'settings-title'},
         el('form', {method: 'dialog'},
            el('div', {class: 'row'}, el('h2', {id: 'settings-title'}, 'Settings'),
               button('Close', {icon: 'close', class: 'quiet square'}, () => dialog.close(''))),
            el('div', {class: 'fields'}, ...chatRows, ...rows, ...toolRows),
            el('div', {class: 'row end'}, button('Reset', {class: 'quiet'}, () => {
                 for (const input of inputs.values()) input.value = '';
                 system.value = '';
                 tools.value = '';
                 thinking.value = 'auto';
               }), el('button', {class: 'primary', type: 'submit', value: 'ok'}, 'Save'))));
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'ok') {
      for (const [name, input] of inputs) settings[name] = input.value === '' ? null : input.valueAsNumber;
      settings.system = system.value;
      settings.thinking = thinking.value;
      settings.tools = tools.value;
      store();
    }
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
}
