// What stands within a line of Markdown: emphasis, code, links, breaks. Returns DOM nodes and strings.

import {el} from './dom.js';

const MOST_DEPTH = 20;      // of emphasis in emphasis; deeper text goes without
const MOST_RUN = 3;         // delimiters side by side; longer runs are text
const MOST_ADDRESS = 2000;  // characters of a link

const ESCAPED = /[!-/:-@[-`{-~]/;
const SPACE = /\s/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const PLAIN = /[^\\`*_~[\]!<&\nhH]+/y;
const BARE = /https?:\/\/[^\s<>`]{1,2000}/iy;
const POINTED =
    /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000}|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})>/iy;
const ENTITY =
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos|nbsp|copy|mdash|ndash|hellip|times|deg));/y;
const NAMED = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: '\'',
  nbsp: '\u00a0',
  copy: '©',
  mdash: '—',
  ndash: '–',
  hellip: '…',
  times: '×',
  deg: '°'
};

// The address, if it is one that a link may have; else null.
function permitted(address) {
  try {
    const url = new URL(address);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function character(code) {
  return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) :
                                                                            '\ufffd';
}

// Where runs of each number of backticks begin, so that every search for a closing run goes forward only.
class Backticks {
  #starts = new Map();

  constructor(text) {
    for (const {0: run, index} of text.matchAll(/`+/g)) {
      if (!this.#starts.has(run.length)) this.#starts.set(run.length, {at: 0, list: []});
      this.#starts.get(run.length).list.push(index);
    }
  }

  closing(length, from) {
    const runs = this.#starts.get(length);
    while (runs.at < runs.list.length && runs.list[runs.at] < from) runs.at += 1;
    return runs.list[runs.at] ?? -1;
  }
}

// Reads `(address "title")` at `from`; null if there is none. A title is read and not shown.
function target(text, from) {
  let i = from + 1;
  while (SPACE.test(text[i] ?? '')) i += 1;
  let address = '';
  if (text[i] === '<') {
    const end = text.slice(i, i + MOST_ADDRESS).search(/[>\n]/);
    if (end < 0 || text[i + end] !== '>') return null;
    address = text.slice(i + 1, i + end);
    i += end + 1;
  } else {
    let open = 0;
    const begin = i;
    for (; i < text.length && i - begin < MOST_ADDRESS && !SPACE.test(text[i]); i += 1) {
      if (text[i] === '\\' && ESCAPED.test(text[i + 1] ?? ''))
        i += 1;
      else if (text[i] === '(' && ++open > 16)
        return null;
      else if (text[i] === ')' && --open < 0)
        break;
    }
    address = text.slice(begin, i).replace(/\\([!-/:-@[-`{-~])/g, '$1');
  }
  const tail = /\s*(?:"[^"]{0,500}"|'[^']{0,500}')?\s{0,100}\)/y;
  tail.lastIndex = i;
  return tail.test(text) ? {address, end: tail.lastIndex} : null;
}

// Tokens: strings, {tag, attributes, children}, and {run, n, opens, closes} for delimiters.
function tokens(text) {
  const found = [];
  const brackets = [];  // open ones: {at: index in found, image}
  const backticks = new Backticks(text);
  let i = 0;
  const take = (pattern) => {
    pattern.lastIndex = i;
    return pattern.exec(text);
  };
  while (i < text.length) {
    const c = text[i];
    const plain = take(PLAIN);
    if (plain !== null) {
      found.push(plain[0]);
      i += plain[0].length;
      continue;
    }
    if (c === '\\') {
      if (text[i + 1] === '\n')
        found.push({tag: 'br', children: []});
      else if (ESCAPED.test(text[i + 1] ?? ''))
        found.push(text[i + 1]);
      else {
        found.push(c);
        i -= 1;
      }
      i += 2;
    } else if (c === '`') {
      let run = 1;
      while (text[i + run] === '`') run += 1;
      const end = backticks.closing(run, i + run);
      if (end < 0) {
        found.push(text.slice(i, i + run));
        i += run;
      } else {
        let code = text.slice(i + run, end).replace(/\n/g, ' ');
        if (code.startsWith(' ') && code.endsWith(' ') && code.trim() !== '') code = code.slice(1, -1);
        found.push({tag: 'code', children: [code]});
        i = end + run;
      }
    } else if (c === '*' || c === '_' || c === '~') {
      let run = 1;
      while (text[i + run] === c) run += 1;
      found.push(delimiter(text, i, run));
      i += run;
    } else if (c === '[' || (c === '!' && text[i + 1] === '[')) {
      brackets.push({at: found.length, image: c === '!'});
      found.push(c === '!' ? '![' : '[');
      i += c === '!' ? 2 : 1;
    } else if (c === ']') {
      i = closeBracket(text, i, found, brackets);
    } else if (c === '<') {
      const link = take(POINTED);
      const address =
          link === null ? null : permitted(/^[a-z]+:/i.test(link[1]) ? link[1] : `mailto:${link[1]}`);
      found.push(address === null ? '<' : anchor(address, [link[1].replace(/^mailto:/i, '')]));
      i += address === null ? 1 : link[0].length;
    } else if (c === '&') {
      const entity = take(ENTITY);
      if (entity === null)
        found.push('&');
      else
        found.push(
            entity[3] ? NAMED[entity[3]] : character(parseInt(entity[1] ?? entity[2], entity[1] ? 10 : 16)));
      i += entity === null ? 1 : entity[0].length;
    } else if (c === '\n') {
      const before = found.at(-1);
      if (typeof before === 'string' && before.endsWith('  ')) {
        found[found.length - 1] = before.trimEnd();
        found.push({tag: 'br', children: []});
      } else {
        found.push('\n');
      }
      i += 1;
    } else {  // an h, where a bare address may begin
      const link = /\w/.test(text[i - 1] ?? '') ? null : take(BARE);
      const shown = link === null ? '' : trimmed(link[0]);
      const address = link === null ? null : permitted(shown);
      found.push(address === null ? c : anchor(address, [shown]));
      i += address === null ? 1 : shown.length;
    }
  }
  return found;
}

// A bare address without the punctuation of the sentence around it.
function trimmed(address) {
  let end = address.length;
  let balance = 0;
  for (const c of address) balance += c === '(' ? 1 : c === ')' ? -1 : 0;
  for (;; end -= 1) {
    const last = address[end - 1];
    if (last === ')' && balance < 0)
      balance += 1;
    else if (!/[?!.,:;*_~'"]/.test(last ?? ''))
      break;
  }
  return address.slice(0, end);
}

const anchor = (href, children) =>
    ({tag: 'a', attributes: {href, rel: 'noopener noreferrer', target: '_blank'}, children});

function closeBracket(text, i, found, brackets) {
  const open = brackets.pop();
  const link = open === undefined || text[i + 1] !== '(' ? null : target(text, i + 1);
  const address = link === null ? null : permitted(link.address);
  if (address === null || open.image) {
    found.push(']');
    return i + 1;
  }
  const children = emphasis(found.splice(open.at + 1));
  found[open.at] = anchor(address, children);
  brackets.length = 0;  // a link holds no link
  return link.end;
}

// Which side of a run words stand on decides whether it opens or closes (CommonMark, "Emphasis").
function delimiter(text, at, length) {
  const c = text[at];
  if (length > MOST_RUN || (c === '~' && length !== 2)) return c.repeat(length);
  const before = at === 0 ? ' ' : text[at - 1];
  const after = text[at + length] ?? ' ';
  const left =
      !SPACE.test(after) && (!PUNCTUATION.test(after) || SPACE.test(before) || PUNCTUATION.test(before));
  const right =
      !SPACE.test(before) && (!PUNCTUATION.test(before) || SPACE.test(after) || PUNCTUATION.test(after));
  const opens = c === '_' ? left && (!right || PUNCTUATION.test(before)) : left;
  const closes = c === '_' ? right && (!left || PUNCTUATION.test(after)) : right;
  return {run: c, n: length, length, opens, closes};
}

// Pairs delimiters; those without a partner become text.
function emphasis(list) {
  const out = [];
  const openers = [];       // places in `out` of delimiters that wait for their partner
  const floor = new Map();  // by kind of closer: openers below have been searched in vain
  for (const token of list) {
    if (token.run === undefined) {
      out.push(token);
      continue;
    }
    while (token.closes && token.n > 0) {
      const kind = `${token.run}${token.opens}${token.length % 3}`;
      const k = partner(out, openers, token, floor.get(kind) ?? 0);
      if (k < 0) {
        floor.set(kind, openers.length);
        break;
      }
      const opener = out[openers[k]];
      const inner = out.splice(openers[k] + 1);
      const used = opener.n >= 2 && token.n >= 2 ? 2 : 1;
      opener.n -= used;
      token.n -= used;
      openers.length = k + 1;
      if (opener.n === 0) {
        out.pop();
        openers.pop();
      }
      for (const [key, value] of floor) floor.set(key, Math.min(value, openers.length));
      out.push({tag: token.run === '~' ? 'del' : used === 2 ? 'strong' : 'em', children: inner.map(asText)});
    }
    if (token.n > 0 && token.opens) openers.push(out.length);
    if (token.n > 0) out.push(token);
  }
  return out.map(asText);
}

function partner(out, openers, closer, floor) {
  for (let k = openers.length - 1; k >= floor; k -= 1) {
    const opener = out[openers[k]];
    if (opener.run !== closer.run) continue;
    const both = (opener.closes || closer.opens) && (opener.length + closer.length) % 3 === 0;
    if (!both || (opener.length % 3 === 0 && closer.length % 3 === 0)) return k;
  }
  return -1;
}

const asText = (token) => (token.run === undefined ? token : token.run.repeat(token.n));

// Strings side by side become one text node.
function nodes(list, depth) {
  const made = [];
  let text = '';
  const flush = () => {
    if (text !== '') made.push(document.createTextNode(text));
    text = '';
  };
  for (const token of list) {
    if (typeof token === 'string') {
      text += token;
    } else if (depth >= MOST_DEPTH) {
      text += flat(token);
    } else {
      flush();
      made.push(el(token.tag, token.attributes ?? {}, ...nodes(token.children, depth + 1)));
    }
  }
  flush();
  return made;
}

function flat(token) {
  let text = '';
  const stack = [token];
  while (stack.length > 0) {
    const top = stack.pop();
    if (typeof top === 'string')
      text += top;
    else
      for (let k = top.children.length - 1; k >= 0; k -= 1) stack.push(top.children[k]);
  }
  return text;
}

const NOTHING = /^[^\\`*_~[\]!<&\nhH]*$/;

export function inline(text) {
  if (NOTHING.test(text)) return [text];
  return nodes(emphasis(tokens(text)), 0);
}
