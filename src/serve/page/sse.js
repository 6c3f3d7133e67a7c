// Server-sent events from the body of a fetch: EventSource could send no key.

// Yields {event, data} for each event and {comment} for each comment line.
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = 'message';
  let data = [];
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      rest += value;
      let from = 0;
      for (let to = rest.indexOf('\n', from); to >= 0; to = rest.indexOf('\n', from)) {
        const line = rest.slice(from, rest[to - 1] === '\r' && to > from ? to - 1 : to);
        from = to + 1;
        if (line === '') {
          if (data.length > 0) yield {event, data: data.join('\n')};
          event = 'message';
          data = [];
        } else if (line.startsWith(':')) {
          yield {comment: line.slice(1).trim()};
        } else if (line.startsWith('data:')) {
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        } else if (line.startsWith('event:')) {
          event = line.slice(6).trim();
        }
      }
      rest = rest.slice(from);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
