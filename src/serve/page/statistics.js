// The line under an answer: what it took.

import {bytes, count, duration, percent, rate, short, whole} from './format.js';

// Parts of the line, for a message with `timings` and maybe `sluice`.
export function statistics({timings, sluice, finish, stopped}) {
  const parts = [];
  if (timings) {
    parts.push(`${count(timings.predicted_n, 'token')}, ${short(timings.predicted_per_second)} tok/s`);
    const kept = timings.cache_n > 0 ? ` + ${whole(timings.cache_n)} kept` : '';
    parts.push(`prompt ${whole(timings.prompt_n)}${kept}`);
    parts.push(`first after ${duration(timings.prompt_ms + (sluice?.queue_ms ?? 0))}`);
  }
  if (sluice) {
    if (sluice.accesses > 0) parts.push(`hits ${percent(sluice.hits, sluice.accesses)}`);
    const seconds = timings ? (timings.prompt_ms + timings.predicted_ms) / 1000 : 0;
    if (sluice.bytes_read > 0)
      parts.push(
          `${bytes(sluice.bytes_read)} read${seconds > 0 ? `, ${rate(sluice.bytes_read / seconds)}` : ''}`);
    if (sluice.batch_mean > 1.05) parts.push(`${short(sluice.batch_mean)} answers a step`);
    if (sluice.stalled_ms > 0) parts.push(`stalled ${duration(sluice.stalled_ms)}`);
    if (sluice.lossy) parts.push(`lossy: ${sluice.lossy.router ?? 'yes'}`);
  }
  if (stopped) parts.push('stopped');
  if (finish === 'length') parts.push('cut: most tokens reached');
  return parts;
}

// Tokens of the context that a conversation takes up to and with this answer; 0 if unknown.
export function contextUsed({usage, timings}) {
  if (usage) return usage.total_tokens;
  return timings ? timings.cache_n + timings.prompt_n + timings.predicted_n : 0;
}
