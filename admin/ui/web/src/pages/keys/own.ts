// The session of a key as it is stored: what its editor and the bulk verbs change.
import { Failure, request, respond } from '../../api';
import type { Base } from '../../parts/draft';
import { ownOf } from './ownText';
import type { Session } from './session';

const at = (hash: string) => `/api/keys/${encodeURIComponent(hash)}`;

/** The session with the key's own limits, as it was sent, and its version. */
export async function loadOwn(hash: string, signal?: AbortSignal): Promise<Base> {
  const answer = await respond('GET', at(hash), { query: { hashed: 'true', own: 'true' }, signal });
  return { text: ownOf(await answer.text()), etag: answer.headers.get('ETag') ?? '' };
}

/** Replaces the session; what was used of its quota stays. */
export const saveOwn = (hash: string, it: { text: string; etag: string }) =>
  request('PUT', at(hash), { query: { hashed: 'true', suppress_reset: 'true' }, body: it.text, headers: it.etag ? { 'If-Match': it.etag } : {} });

/** What a session comes to with its policies. A failure has what is wrong with it. */
export const previewOwn = (text: string, signal: AbortSignal) => request<Session>('POST', '/api/keys/preview', { body: text, signal });

const tries = 3;

/** Changes the session of a key as it is now; false: it was so already. */
export async function changeOwn(hash: string, edit: (text: string) => string): Promise<boolean> {
  for (let n = 1; ; n++) {
    const base = await loadOwn(hash);
    const text = edit(base.text);
    if (text === base.text) return false;
    try {
      await saveOwn(hash, { text, etag: base.etag });
      return true;
    } catch (cause) {
      if (!(cause instanceof Failure && cause.status === 409) || n === tries) throw cause;
    }
  }
}
