// Conversations in the browser's storage, one entry each, and as a file to keep or to move.

import {Conversation, newId} from './conversation.js';
import {keep, lasting} from './storage.js';

const PREFIX = 'sluice.conversation.';
const FORMAT = 'sluice-conversations';

// Entries begin with what the list shows (Conversation.toJSON), so that it need not read all messages.
const HEAD = /^\{"id":"([a-z0-9]+)","title":("(?:[^"\\]|\\.)*"),"created":\d+,"updated":(\d+),/;

function headOf(text) {
  const head = HEAD.exec(text.slice(0, 2000));
  try {
    return head && {id: head[1], title: JSON.parse(head[2]), updated: Number(head[3])};
  } catch {
    return null;
  }
}

// {id, title, updated} of all conversations, newest first.
export function listConversations() {
  const found = [];
  for (let i = 0; i < lasting.length; i += 1) {
    const key = lasting.key(i);
    if (!key.startsWith(PREFIX)) continue;
    const read = headOf(lasting.getItem(key)) ?? loadConversation(key.slice(PREFIX.length));
    if (read !== null) found.push({id: read.id, title: read.title, updated: read.updated});
  }
  return found.sort((a, b) => b.updated - a.updated);
}

export function loadConversation(id) {
  try {
    const text = lasting.getItem(PREFIX + id);
    return text === null ? null : Conversation.from(JSON.parse(text));
  } catch {
    return null;  // an entry that others have garbled
  }
}

// False if the browser has no room left.
export function saveConversation(conversation) {
  return keep(lasting, PREFIX + conversation.id, JSON.stringify(conversation));
}

export function removeConversation(id) { lasting.removeItem(PREFIX + id); }

export function exportConversations() {
  const conversations = listConversations().map(({id}) => loadConversation(id));
  return JSON.stringify({format: FORMAT, version: 1, conversations}, null, 1);
}

// The number of conversations that were read. One that is here already, and differs, gets a new id beside it.
export function importConversations(text) {
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error('The file is not JSON.');
  }
  if (json?.format !== FORMAT || !Array.isArray(json.conversations)) {
    throw new Error(`The file is not an export of this page: its "format" should be "${FORMAT}".`);
  }
  const read = json.conversations.map((entry, i) => {
    try {
      return Conversation.from(entry);
    } catch (error) {
      throw new Error(`Conversation ${i + 1} of the file cannot be read: ${error.message}.`);
    }
  });
  for (const conversation of read) {
    const here = lasting.getItem(PREFIX + conversation.id);
    if (here !== null && here !== JSON.stringify(conversation)) conversation.id = newId();
    if (!saveConversation(conversation))
      throw new Error('The browser has no room left for these conversations.');
  }
  return read.length;
}
