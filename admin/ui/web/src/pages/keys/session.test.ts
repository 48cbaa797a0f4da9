import { expect, it } from 'vitest';
import { scopesOf } from './session';

it('lists the quotas of a session with what is used', () => {
  expect(scopesOf({ quota_max: 10, quota_remaining: 3, quota_renews: 5, access_rights: { a: { limit: { quota_max: 4, quota_remaining: 9 } }, b: { limit: null }, c: { api_name: 'C', limit: { quota_max: 2, quota_remaining: -1 } } } })).toEqual([
    { name: '', api: undefined, max: 10, used: 7, renews: 5 },
    { name: 'a', api: 'a', max: 4, used: 0, renews: undefined },
    { name: 'C', api: 'c', max: 2, used: 2, renews: undefined },
  ]);
  expect(scopesOf({ quota_max: -1 })).toEqual([]);
  expect(scopesOf({})).toEqual([]);
});
