import { expect, test } from 'vitest';
import { kindOf, sha256 } from './pasted';

test('the plain SHA-256 computes what the browser does', async () => {
  for (const length of [0, 1, 3, 55, 56, 63, 64, 65, 119, 120, 1000]) {
    const text = 'aß7'.repeat(length).slice(0, length);
    const bytes = new TextEncoder().encode(text);
    expect(sha256(bytes)).toEqual(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
  }
});

test('what is pasted is recognised', () => {
  expect(kindOf('7c0e4b1f-0000-4000-8000-0123456789ab')).toEqual({ request: true, key: false });
  expect(kindOf('slk_4mQxYz0123456789abcdefgh').key).toBe(true);
  expect(kindOf('gold').key).toBe(false);
  expect(kindOf('countries and more').key).toBe(false);
  expect(kindOf('/countries/something/long').key).toBe(false);
});
