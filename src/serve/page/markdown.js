// Markdown to DOM nodes. HTML and images stay text; links go to http, https and mailto alone. Time grows
// linearly with the text, whatever it is: nesting is bounded, and no search is repeated.

import {copyFrom, el} from './dom.js';

import {inline} from './inline.js';

const MOST_DEPTH = 12;  // of lists and quotes in each other; what is deeper is a paragraph

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t].*)?$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}(?! )| (?= )|$)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;

const isBlank = (line) => line.trim() === '';

function indentOf(line) {
  let columns = 0;
  while (line[columns] === ' ') columns += 1;
  return columns;
}

const dedent = (line, columns) => line.slice(Math.min(columns, indentOf(line)));

// Cells of a row of a table; a pipe behind a backslash or in code belongs to its cell.
function cells(line) {
  const found = [];
  let cell = '';
  let code = 0;
  for (let i = 0; i < line.length;) {
    if (line[i] === '\\' && i + 1 < line.length) {
      cell += line[i + 1] === '|' ? '|' : line.slice(i, i + 2);
      i += 2;
      continue;
    }
    if (line[i] === '`') {
      let run = i;
      while (line[run] === '`') run += 1;
      if (code === 0)
        code = line.includes(line.slice(i, run), run) && run - i < 4 ? run - i : 0;
      else if (code === run - i)
        code = 0;
      cell += line.slice(i, run);
      i = run;
      continue;
    }
    if (line[i] === '|' && code === 0) {
      found.push(cell.trim());
      cell = '';
    } else {
      cell += line[i];
    }
    i += 1;
  }
  found.push(cell.trim());
  if (found.length > 1 && found[0] === '') found.shift();
  if (found.length > 1 && found.at(-1) === '') found.pop();
  return found;
}

// Alignments, if `line` is the row of dashes below a table's head.
function alignments(line) {
  if (!line?.includes('-') || !/^[ \t|:-]+$/.test(line) || !line.includes('|')) return null;
  const marks = cells(line);
  if (!marks.every((mark) => /^:?-+:?$/.test(mark))) return null;
  return marks.map(
      (mark) =>
          (mark.endsWith(':')       ? (mark.startsWith(':') ? 'center' : 'right') :
               mark.startsWith(':') ? 'left' :
                                      ''));
}

function tableHead(lines, i) {
  if (!lines[i].includes('|')) return null;
  const sides = alignments(lines[i + 1]);
  return sides !== null && cells(lines[i]).length === sides.length ? sides : null;
}

// Whether line `i` ends a paragraph above it.
function interrupts(lines, i) {
  const line = lines[i];
  if (FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) return true;
  const item = ITEM.exec(line);
  if (item !== null && item[3] !== '' && (!/\d/.test(item[2]) || /^1[.)]/.test(item[2]))) return true;
  return tableHead(lines, i) !== null;
}

// Blocks of `lines`: {kind, start, end, …}, lines [start, end).
function parse(lines, depth) {
  const blocks = [];
  for (let i = 0; i < lines.length;) {
    if (isBlank(lines[i])) {
      i += 1;
      continue;
    }
    const block = parseOne(lines, i, depth);
    blocks.push(block);
    i = block.end;
  }
  return blocks;
}

function parseOne(lines, start, depth) {
  const line = lines[start];
  if (indentOf(line) >= 4) return indentedCode(lines, start);
  const fence = FENCE.exec(line);
  if (fence !== null) return fencedCode(lines, start, fence);
  const heading = HEADING.exec(line);
  if (heading !== null) {
    const text = line.trim().slice(heading[1].length).trim();
    let end = text.length;
    while (text[end - 1] === '#') end -= 1;
    const closed = end === 0 || (end < text.length && /\s/.test(text[end - 1]));
    return {
      kind: 'heading',
      level: heading[1].length,
      text: closed ? text.slice(0, end).trim() : text,
      start,
      end: start + 1
    };
  }
  if (RULE.test(line)) return {kind: 'rule', start, end: start + 1};
  if (depth < MOST_DEPTH) {
    if (QUOTE.test(line)) return quote(lines, start, depth);
    if (ITEM.test(line)) return list(lines, start, depth);
  }
  const sides = tableHead(lines, start);
  if (sides !== null) return table(lines, start, sides);
  return paragraph(lines, start);
}

function indentedCode(lines, start) {
  let end = start;
  for (let i = start; i < lines.length && (isBlank(lines[i]) || indentOf(lines[i]) >= 4); i += 1) {
    if (!isBlank(lines[i])) end = i + 1;
  }
  return {
    kind: 'code',
    language: '',
    text: lines.slice(start, end).map((line) => line.slice(4)).join('\n'),
    start,
    end
  };
}

function fencedCode(lines, start, fence) {
  const indent = indentOf(lines[start]);
  const close = new RegExp(`^ {0,3}${fence[1][0]}{${fence[1].length},}[ \\t]*$`);
  let end = start + 1;
  while (end < lines.length && !close.test(lines[end])) end += 1;
  const text = lines.slice(start + 1, end).map((line) => dedent(line, indent)).join('\n');
  return {
    kind: 'code',
    language: fence[2].trim().split(/\s/)[0],
    text,
    start,
    end: Math.min(end + 1, lines.length)
  };
}

function quote(lines, start, depth) {
  const inner = [];
  let end = start;
  for (; end < lines.length; end += 1) {
    if (QUOTE.test(lines[end]))
      inner.push(lines[end].replace(QUOTE, ''));
    else if (isBlank(lines[end]) || isBlank(inner.at(-1)) || interrupts(lines, end))
      break;
    else
      inner.push(lines[end]);
  }
  return {kind: 'quote', blocks: parse(inner, depth + 1), start, end};
}

const listKind = (mark) => (/\d/.test(mark) ? mark.at(-1) : mark);

function list(lines, start, depth) {
  const first = ITEM.exec(lines[start]);
  const kind = listKind(first[2]);
  const items = [];
  let loose = false;
  let i = start;
  let end = start;
  while (i < lines.length) {
    const mark = ITEM.exec(lines[i]);
    if (mark === null || listKind(mark[2]) !== kind || RULE.test(lines[i])) break;
    if (end < i && items.length > 0) loose = true;  // blank lines between items
    const width = mark[1].length + mark[2].length + (mark[3].length || 1);
    const inner = [lines[i].slice(Math.min(width, lines[i].length))];
    i += 1;
    end = i;
    for (; i < lines.length; i += 1) {
      if (isBlank(lines[i])) {
        inner.push('');
        continue;
      }
      // Two columns are enough for a list in a list: people and models count so.
      const inside =
          indentOf(lines[i]) >= width || (indentOf(lines[i]) >= 2 && ITEM.test(lines[i].trimStart()));
      const goesOn = i === end && indentOf(lines[i]) < 4 && !ITEM.test(lines[i]) && !interrupts(lines, i) &&
          !isBlank(inner.at(-1));
      if (!inside && !goesOn) break;
      inner.push(dedent(lines[i], width));
      end = i + 1;
    }
    while (inner.length > 0 && isBlank(inner.at(-1))) inner.pop();
    const blocks = parse(inner, depth + 1);
    for (let b = 1; b < blocks.length; b += 1) {
      if (blocks[b].start > blocks[b - 1].end) loose = true;
    }
    items.push(blocks);
  }
  return {
    kind: 'list',
    ordered: kind === '.' || kind === ')',
    first: parseInt(first[2], 10),
    items,
    loose,
    start,
    end
  };
}

function table(lines, start, sides) {
  const rows = [];
  let end = start + 2;
  for (; end < lines.length && !isBlank(lines[end]); end += 1) {
    if (!lines[end].includes('|') && interrupts(lines, end)) break;
    if (QUOTE.test(lines[end]) || FENCE.test(lines[end])) break;
    rows.push(cells(lines[end]));
  }
  return {kind: 'table', sides, head: cells(lines[start]), rows, start, end};
}

function paragraph(lines, start) {
  let end = start + 1;
  for (; end < lines.length && !isBlank(lines[end]); end += 1) {
    const under = UNDERLINE.exec(lines[end]);
    if (under !== null) {
      const text = lines.slice(start, end).map((line) => line.trim()).join('\n');
      return {kind: 'heading', level: under[1][0] === '=' ? 1 : 2, text, start, end: end + 1};
    }
    if (interrupts(lines, end)) break;
  }
  const text = lines.slice(start, end).map((line) => line.trimStart()).join('\n').trimEnd();
  return {kind: 'paragraph', text, start, end};
}

function build(block, tight = false) {
  switch (block.kind) {
    case 'heading':
      // The page has headings of its own above those of an answer.
      return el(`h${Math.min(6, block.level + 2)}`, {class: `h${block.level}`}, ...inline(block.text));
    case 'rule':
      return el('hr');
    case 'code':
      return codeBlock(block);
    case 'quote':
      return el('blockquote', {}, ...block.blocks.map((inner) => build(inner)));
    case 'list': {
      const items =
          block.items.map((blocks) => el('li', {}, ...blocks.flatMap((inner) => build(inner, !block.loose))));
      const start = block.ordered && block.first !== 1 ? {start: String(block.first)} : {};
      return el(block.ordered ? 'ol' : 'ul', start, ...items);
    }
    case 'table':
      return tableNode(block);
    default:
      return tight ? inline(block.text) : el('p', {}, ...inline(block.text));
  }
}

// Blocks are copies of one, and one listener serves all: a text can have thousands.
const CODE =
    el('div', {class: 'code'},
       el('div', {class: 'code-head'}, el('span'),
          el('button', {type: 'button', class: 'quiet', 'aria-label': 'Copy the code'}, 'Copy')),
       el('pre', {tabindex: '0', role: 'region'}, el('code')));

document.addEventListener('click', ({target}) => {
  const button = target.closest?.('.code-head button');
  if (button) copyFrom(button, button.closest('.code').querySelector('code').textContent);
});

function codeBlock({language, text}) {
  if (text === '') return el('div', {class: 'code'}, el('pre'));  // nothing to copy, or nothing yet
  const node = CODE.cloneNode(true);
  const [head, pre] = node.children;
  head.firstChild.textContent = language || 'text';
  pre.setAttribute('aria-label', language ? `Code, ${language}` : 'Code');
  pre.firstChild.textContent = text;
  return node;
}

function tableNode({sides, head, rows}) {
  const row = (tag, texts) => {
    const made = document.createElement('tr');
    sides.forEach((side, column) => {
      const cell = made.appendChild(document.createElement(tag));
      if (side !== '') cell.className = side;
      if (tag === 'th') cell.scope = 'col';
      cell.append(...inline(texts[column] ?? ''));
    });
    return made;
  };
  return el(
      'div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Table'},
      el('table', {}, el('thead', {}, row('th', head)),
         el('tbody', {}, ...rows.map((texts) => row('td', texts)))));
}

function linesOf(text) {
  return text.replace(/\r\n?/g, '\n')
      .split('\n')
      .map((line) => (line.includes('\t') ? line.replace(/^[ \t]+/, spread) : line));
}

// Leading tabs as blanks up to the next fourth column.
function spread(blanks) {
  let columns = 0;
  for (const c of blanks) columns += c === '\t' ? 4 - (columns % 4) : 1;
  return ' '.repeat(columns);
}

export function markdown(text) {
  const made = document.createDocumentFragment();
  made.append(...parse(linesOf(text), 0).flatMap((block) => build(block)));
  return made;
}

// A text that grows: nodes of blocks that can no longer change stay, the last ones are made anew.
export class GrowingMarkdown {
  #place;
  #text = '';
  #done = 0;  // characters of #text whose nodes stay
  #kept = 0;  // and how many nodes those are

  constructor(place) { this.#place = place; }

  set(text) {
    if (text === this.#text) return;
    if (!text.startsWith(this.#text)) {
      this.#done = 0;
      this.#kept = 0;
    }
    this.#text = text;
    while (this.#place.childNodes.length > this.#kept) this.#place.lastChild.remove();
    this.#settle();
    this.#place.append(markdown(text.slice(this.#done)));
  }

  // All blocks of whole lines stay, but the last: the next line may belong to it.
  #settle() {
    const whole = this.#text.lastIndexOf('\n') + 1;
    if (whole <= this.#done) return;
    const rest = this.#text.slice(this.#done, whole - 1);
    const blocks = parse(linesOf(rest), 0);
    if (blocks.length < 2) return;
    const lines = blocks.at(-1).start;
    let end = this.#done;
    for (let n = 0; n < lines; n += 1) end = nextLine(this.#text, end);
    this.#place.append(...blocks.slice(0, -1).flatMap((block) => build(block)));
    this.#done = end;
    this.#kept = this.#place.childNodes.length;
  }
}

// Where the line behind the one at `from` begins; lines end as in linesOf.
function nextLine(text, from) {
  for (let i = from;; i += 1) {
    if (text[i] === '\n') return i + 1;
    if (text[i] === '\r') return text[i + 1] === '\n' ? i + 2 : i + 1;
  }
}
