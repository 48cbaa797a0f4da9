// The one way to the server: same origin, the session's cookie, and failures as Failure.
import createClient from 'openapi-fetch';
import type { paths } from '../api.gen';
import { base, createStore, randomID } from '../lib';
import { Failure, failureOf } from './failure';

const root = base.replace(/\/$/, '');

/** The token that unsafe methods show; the session sets it. */
export const csrf = { token: '' };

/** Whether the last call reached the server. */
export const online = createStore(true);

/** Opens the sign-in over the page and resolves when there is a session again. */
let signInAgain: () => Promise<void> = () => Promise.reject(new Error('no sign-in yet'));
export function onSignedOut(handler: () => Promise<void>): void {
  signInAgain = handler;
}

const unsafe = (method: string) => !['GET', 'HEAD', 'OPTIONS'].includes(method);

async function send(request: Request): Promise<Response> {
  const { method } = request;
  const path = new URL(request.url).pathname.slice(root.length);
  for (;;) {
    const attempt = request.clone();
    if (unsafe(method)) {
      attempt.headers.set('X-CSRF-Token', csrf.token);
      if (!attempt.headers.has('Content-Type')) attempt.headers.set('Content-Type', 'application/json');
    }
    let answer: Response;
    try {
      answer = await fetch(attempt);
    } catch (cause) {
      if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
      online.set(false);
      throw new Failure(0, 'The server did not answer. It may be restarting, or the network is away.', method, path);
    }
    online.set(true);
    if (answer.status === 401 && path !== '/api/session') {
      await signInAgain();
      continue;
    }
    if (!answer.ok && answer.status !== 304) throw await failureOf(method, path, answer);
    return answer;
  }
}

/** The typed client. Its methods throw Failure; use data() to get the body. */
export const api = createClient<paths>({
  baseUrl: location.origin + root,
  fetch: send,
  credentials: 'same-origin',
});

/** The body of an answer of the typed client. */
export async function data<T>(answer: Promise<{ data?: T; response: Response }>): Promise<T> {
  return (await answer).data as T;
}

/** The body and the entity tag, for a later If-Match. */
export async function versioned<T>(answer: Promise<{ data?: T; response: Response }>): Promise<{ value: T; etag: string }> {
  const { data: value, response } = await answer;
  return { value: value as T, etag: response.headers.get('ETag') ?? '' };
}

export interface Options {
  query?: Record<string, string | number | boolean | undefined>;
  /** Sent as it is if it is text, else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Adds an Idempotency-Key: the same call sent twice is carried out once. */
  once?: string | true;
}

/** A call whose path is not known to the types, or whose body is sent as text. */
export async function request<T = unknown>(method: string, path: string, o: Options = {}): Promise<T> {
  const answer = await respond(method, path, o);
  const text = await answer.text();
  if (!text) return undefined as T;
  return (answer.headers.get('Content-Type')?.includes('json') ? JSON.parse(text) : text) as T;
}

/** Like request, for callers that need headers or the text as it was sent. */
export function respond(method: string, path: string, o: Options = {}): Promise<Response> {
  const url = new URL(location.origin + root + path);
  for (const [name, value] of Object.entries(o.query ?? {})) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value));
  }
  const headers = new Headers(o.headers);
  // A Request gives text a type of its own, which is not that of the admin's calls.
  if (o.body !== undefined && !headers.has('Content-Type')) headers.set('Content-Type', 'application/json');
  if (o.once) headers.set('Idempotency-Key', o.once === true ? randomID() : o.once);
  const body = o.body === undefined ? undefined : typeof o.body === 'string' ? o.body : JSON.stringify(o.body);
  return send(new Request(url, { method, headers, body, signal: o.signal, credentials: 'same-origin' }));
}
