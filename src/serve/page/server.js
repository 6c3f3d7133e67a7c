// Calls of the server's endpoints.

import {askKey, currentKey} from './key.js';

export class ServerError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function failure(response) {
  const text = await response.text().catch(() => '');
  try {
    const {error} = JSON.parse(text);
    return new ServerError(response.status, error.code ?? null, error.message);
  } catch {
    return new ServerError(
        response.status, null,
        `The server answered ${response.status}${text ? `: ${text.slice(0, 200)}` : ''}`);
  }
}

// A Response that is ok; otherwise throws: ServerError where the server answered, TypeError where it is not
// there, AbortError where `signal` ended the call. A 401 asks for the key and tries again.
export async function request(path, {body, signal} = {}) {
  for (;;) {
    const key = currentKey();
    const headers = {};
    if (key !== null) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const response = await fetch(path, {
      method: body === undefined ? 'GET' : 'POST',
      body: body === undefined ? undefined : JSON.stringify(body),
      headers,
      signal,
      cache: 'no-store',
      credentials: 'omit',
    });
    if (response.ok) return response;
    if (response.status !== 401) throw await failure(response);
    if (key === currentKey() && (await askKey()) === null) throw await failure(response);
  }
}

export async function getJson(path, options) { return (await request(path, options)).json(); }

// Words for an error of `request`.
export function explain(error) {
  if (error instanceof ServerError) return error.message;
  if (error instanceof TypeError) return 'The server does not answer. It may have been stopped.';
  return String(error.message ?? error);
}
