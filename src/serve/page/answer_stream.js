// An answer as it comes: one request, whose fragments are put together in a message.

import {request, ServerError} from './server.js';
import {readEvents} from './sse.js';

// Posts `body` and yields after each change of `message` (content, reasoning, calls, finish, usage, timings,
// sluice), or yields words of what the server does meanwhile. Throws as `request` does, and where the stream
// ends without its end.
export async function* answerStream(path, body, message, signal) {
  const response = await request(path, {
    body: {...body, stream: true, stream_options: {include_usage: true}, return_progress: true},
    signal,
  });
  for await (const {comment, data} of readEvents(response.body)) {
    if (comment !== undefined) {
      yield words(comment);
      continue;
    }
    if (data === '[DONE]') return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ServerError(0, chunk.error.code ?? null, chunk.error.message);
    if (chunk.prompt_progress) {
      const {processed, cache, total} = chunk.prompt_progress;
      yield `Reading the prompt: ${Math.max(processed, cache)} of ${total} tokens`;
      continue;
    }
    take(chunk, message);
    yield null;
  }
  throw new Error('The connection ended before the answer did.');
}

function words(comment) {
  const waiting = /^waiting (\d+) of (\d+)/.exec(comment);
  if (waiting !== null) return `Waiting: ${waiting[1]} of ${waiting[2]} in the queue`;
  const prefill = /^prefill (\d+) of (\d+)/.exec(comment);
  return prefill === null ? null : `Reading the prompt: ${prefill[1]} of ${prefill[2]} tokens`;
}

function take(chunk, message) {
  if (chunk.usage) message.usage = chunk.usage;
  if (chunk.timings) message.timings = chunk.timings;
  if (chunk.sluice) message.sluice = chunk.sluice;
  const choice = chunk.choices?.[0];
  if (choice === undefined) return;
  const delta = choice.delta ?? {content: choice.text};
  if (delta.content) message.content += delta.content;
  const reasoning = delta.reasoning_content ?? delta.reasoning;
  if (reasoning) message.reasoning = (message.reasoning ?? '') + reasoning;
  for (const part of delta.tool_calls ?? []) {
    message.calls ??= [];
    message.calls[part.index] ??= {id: '', name: '', arguments: ''};
    const call = message.calls[part.index];
    if (part.id) call.id = part.id;
    if (part.function?.name) call.name = part.function.name;
    call.arguments += part.function?.arguments ?? '';
  }
  if (choice.finish_reason) message.finish = choice.finish_reason;
}
