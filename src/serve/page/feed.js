// The connection to `/events`: it comes back by itself, rests while the page is hidden, and says how things
// stand.

import {request, ServerError} from './server.js';
import {readEvents} from './sse.js';

const QUIET_MS = 20000;  // a server that has sent nothing for so long is asked again
const WAITS_MS = [500, 1000, 2000, 3000, 5000];

// Dispatches an Event for each name of the server (`hello`, `experts`, `stats`, `requests`, `plan`) with its
// JSON as `detail`, and `state` on change: connecting, open, gone, loading, draining, locked (no key), none
// (no such endpoint), resting.
export class Feed extends EventTarget {
  state = 'connecting';
  progress = 0;
  hello = null;
  last = new Map();  // newest data by name, for views that are opened later

  #controller = null;
  #wake = null;

  constructor() {
    super();
    document.addEventListener('visibilitychange', () => {
      if (document.hidden)
        this.#controller?.abort();
      else
        this.retry();
    });
  }

  // Ends a wait: the next try comes at once.
  retry() { this.#wake?.(); }

  async start() {
    for (let failures = 0;;) {
      if (document.hidden) {
        this.#set('resting');
        await this.#wait(null);
        continue;
      }
      this.#controller = new AbortController();
      try {
        const response = await request('/events', {signal: this.#controller.signal});
        failures = 0;
        this.#set('open');
        await this.#read(response.body);
      } catch (error) {
        if (await this.#explain(error)) {
          await this.#wait(null);
          continue;
        }
      }
      if (document.hidden) continue;
      if (this.state === 'open') this.#set('gone');
      await this.#wait(WAITS_MS[Math.min(failures, WAITS_MS.length - 1)]);
      failures += 1;
    }
  }

  async #read(body) {
    let heard = performance.now();
    const watch = setInterval(() => {
      if (performance.now() - heard > QUIET_MS) this.#controller.abort();
    }, 1000);
    try {
      for await (const {event, data} of readEvents(body)) {
        heard = performance.now();
        if (data === undefined) continue;
        const detail = JSON.parse(data);
        if (event === 'hello') this.hello = detail;
        if (event !== 'experts') this.last.set(event, detail);
        this.dispatchEvent(new CustomEvent(event, {detail}));
      }
    } finally {
      clearInterval(watch);
    }
  }

  // Sets the state that `error` stands for; true if only the user can change it.
  async #explain(error) {
    if (error instanceof ServerError && error.status === 401) {
      this.#set('locked');
      return true;
    }
    if (error instanceof ServerError && (error.status === 404 || error.status === 501)) {
      this.#set('none');
      return true;
    }
    if (document.hidden) return false;
    try {
      const response = await fetch('/health', {cache: 'no-store'});
      const health = await response.json();
      if (health.status === 'ok')
        this.#set(error instanceof ServerError ? 'gone' : 'connecting');
      else
        this.#set(health.status, health.progress ?? 0);
    } catch {
      this.#set('gone');
    }
    return false;
  }

  // Without a limit it ends by `retry` alone.
  #wait(limitMs) {
    return new Promise((resolve) => {
      const timer = limitMs === null ? 0 : setTimeout(() => this.#wake?.(), limitMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
    });
  }

  #set(state, progress = 0) {
    if (state === this.state && progress === this.progress) return;
    this.state = state;
    this.progress = progress;
    this.dispatchEvent(new Event('state'));
  }
}
