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
  expect(kindOf('7c0e4b1f-0000-4000-8000-0123456789ab')).toEqual({ request: true, key: '' });
  const key = 'slk_4mQxYz0123456789abcdefgh';
  for (const text of [key, `Bearer ${key}`, `curl -H 'Authorization: ${key}' https://api.example.com/orders`, `https://api.example.com/orders?key=${key}&page=1`]) {
    expect(kindOf(text)).toEqual({ request: false, key });
  }
  expect(kindOf('Basic YWRhOmEvbG9uZy9wYXNzd29yZA/+8=').key).toBe('YWRhOmEvbG9uZy9wYXNzd29yZA/+8=');
  expect(kindOf('0123456789abcdef0123456789').key).toBe('0123456789abcdef0123456789');
  for (const text of ['gold', 'countries and more', '/countries/something/long', '/Orders/v2/a-long-one', 'https://api.example.com/Orders/v2', 'acme-production-orders']) {
    expect(kindOf(text).key).toBe('');
  }
});
