// The plan of the engine in sentences.

import {bytes, count, duration} from './format.js';

const ACCOUNTS = {
  process: 'the program itself',
  dense: 'weights that every token uses',
  experts: 'experts that stay in memory',
  kv: 'keys and values of the conversations',
  activations: 'intermediate results',
  staging: 'bytes on their way from disk',
  tables: 'tokenizer and tables',
  serve: 'connections and requests',
};

export function planWords(plan, limits) {
  if (Array.isArray(plan.words)) return plan.words.map(String);
  const words = [];
  if (plan.budget > 0) {
    words.push(`The engine keeps to ${bytes(plan.budget)}${
        plan.minimum > 0 ? `; with less than ${bytes(plan.minimum)} it could not run` : ''}.`);
  }
  if (plan.by_name) {
    const parts = Object.entries(plan.by_name)
                      .sort((a, b) => b[1] - a[1])
                      .filter(([, size]) => size > 0)
                      .map(([name, size]) => `${bytes(size)} for ${ACCOUNTS[name] ?? name}`);
    words.push(`It gives ${list(parts)}.`);
  }
  for (const {parts, experts, bytes_each: each} of plan.held ?? []) {
    words.push(`There is room for ${count(experts, 'expert')} with ${parts}, ${bytes(each)} each.`);
  }
  if (plan.policies) {
    const {preset, cache, prefetch, router, scheduler, precision} = plan.policies;
    words.push(`${preset ? `Preset “${preset}”: e` : 'E'}xperts stay by the rule “${cache}”, and ${
        prefetch === 'none' ? 'nothing is read ahead' : `are read ahead by “${prefetch}”`}.`);
    words.push(
        router === 'exact' ?
            'Routing is exact: answers are those of the model, bit for bit.' :
            `The router “${router}” may choose other experts than the model would: answers can differ.`);
    if (scheduler)
      words.push(`Work is ordered by “${scheduler}”${
          precision && precision !== 'full' ? `, at precision “${precision}”` : ''}.`);
  }
  if (plan.dense?.view)
    words.push(`Weights that every token uses lie in memory as ${plan.dense.view}${
        plan.dense.why ? `: ${plan.dense.why}` : ''}.`);
  if (plan.predicted?.seconds_per_token > 0)
    words.push(`A token is predicted to take ${duration(1000 * plan.predicted.seconds_per_token)}.`);
  if (limits)
    words.push(`A conversation has up to ${count(limits.n_ctx, 'token')}; ${
        count(limits.parallel, 'request')} run side by side, ${limits.queue} more may wait.`);
  return words;
}

function list(parts) {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}
