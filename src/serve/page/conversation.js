// A conversation is a tree: an edited question or another answer is a branch beside the first one.

export function newId() {
  const words = crypto.getRandomValues(new Uint32Array(3));
  return Array.from(words, (word) => word.toString(36).padStart(7, '0')).join('');
}

const ROLES = new Set(['user', 'assistant', 'tool']);
const TEXTS = ['content', 'reasoning', 'error', 'finish', 'name', 'tool_call_id'];

// Members of a message: id, parent (null: a beginning), role, content; of an answer also reasoning, calls
// ([{id, name, arguments}]), timings, sluice, usage, finish, stopped, error; of a tool's result tool_call_id
// and name.
export class Conversation {
  id = newId();
  title = '';
  created = Date.now();
  updated = Date.now();
  messages = new Map();  // id → message, in the order of their making
  chosen = new Map();    // id of a parent (or '') → id of the branch that is shown

  static from(json) {
    const made = new Conversation();
    if (typeof json !== 'object' || json === null || !Array.isArray(json.messages))
      throw new Error('it has no list "messages"');
    if (typeof json.id === 'string' && /^[a-z0-9]{1,40}$/.test(json.id)) made.id = json.id;
    made.title = String(json.title ?? '').slice(0, 200);
    made.created = Number(json.created) || made.created;
    made.updated = Number(json.updated) || made.created;
    for (const message of json.messages) {
      const read = messageFrom(message);
      if (read.parent !== null && !made.messages.has(read.parent))
        throw new Error(`message "${read.id}" has no parent "${read.parent}"`);
      made.messages.set(read.id, read);
    }
    for (const [parent, id] of Object.entries(json.chosen ?? {})) {
      if (made.messages.get(id) !== undefined && (made.messages.get(id).parent ?? '') === parent)
        made.chosen.set(parent, id);
    }
    return made;
  }

  toJSON() {
    const {id, title, created, updated} = this;
    return {
      id,
      title,
      created,
      updated,
      messages: [...this.messages.values()],
      chosen: Object.fromEntries(this.chosen)
    };
  }

  add(parent, members) {
    const message = {id: newId(), parent: parent?.id ?? null, content: '', ...members};
    this.messages.set(message.id, message);
    this.choose(message);
    if (this.title === '' && message.role === 'user') this.title = titleOf(message.content);
    this.updated = Date.now();
    return message;
  }

  choose(message) { this.chosen.set(message.parent ?? '', message.id); }

  // The branches beside `message`, itself among them.
  branches(message) { return [...this.messages.values()].filter((other) => other.parent === message.parent); }

  // Messages that are shown, first to last.
  path() {
    const shown = [];
    for (let parent = '';;) {
      const message = this.messages.get(this.chosen.get(parent));
      if (message === undefined) return shown;
      shown.push(message);
      parent = message.id;
    }
  }

  parentOf(message) { return message.parent === null ? null : this.messages.get(message.parent); }

  // What the server is sent so that it answers `last`.
  prompt(last, system) {
    const list = [];
    for (let message = last; message; message = this.parentOf(message)) list.unshift(forServer(message));
    if (system !== '') list.unshift({role: 'system', content: system});
    return list;
  }
}

function titleOf(text) {
  const line = text.trim().split('\n')[0];
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line;
}

function messageFrom(json) {
  if (typeof json !== 'object' || json === null || typeof json.id !== 'string' || !ROLES.has(json.role)) {
    throw new Error('a message has no "id", or its "role" is not user, assistant or tool');
  }
  const read = {
    id: json.id,
    parent: typeof json.parent === 'string' ? json.parent : null,
    role: json.role,
    content: ''
  };
  for (const key of TEXTS) {
    if (typeof json[key] === 'string') read[key] = json[key];
  }
  for (const key of ['timings', 'sluice', 'usage']) {
    if (typeof json[key] === 'object' && json[key] !== null) read[key] = json[key];
  }
  if (json.stopped === true) read.stopped = true;
  if (Array.isArray(json.calls)) {
    read.calls = json.calls.map(
        (call) => ({id: String(call?.id), name: String(call?.name), arguments: String(call?.arguments)}));
  }
  return read;
}

function forServer(message) {
  if (message.role === 'tool')
    return {role: 'tool', tool_call_id: message.tool_call_id, content: message.content};
  const sent = {role: message.role, content: message.content};
  if (message.reasoning) sent.reasoning_content = message.reasoning;
  if (message.calls?.length > 0) {
    sent.tool_calls = message.calls.map(
        (call) => ({id: call.id, type: 'function', function: {name: call.name, arguments: call.arguments}}));
    if (message.content === '') sent.content = null;
  }
  return sent;
}
