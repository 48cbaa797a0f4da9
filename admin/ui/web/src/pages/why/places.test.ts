import { expect, test } from 'vitest';
import { decidedBy, placeOfRefusal, placesOf } from './places';

const of = { api: 'orders', key: 'abc' };

test('a value is found where it is set', () => {
  for (const [rule, value, from, to, search] of [
    ['max_query_depth', '3', 'policy gold', '/policies/gold', { at: 'max_query_depth' }],
    ['quota', '10 per 60 s', 'policy gold', '/policies/gold', { at: 'quota_max' }],
    ['rate', '1 per 1 s', 'the entry for the API in policy gold', '/policies/gold', { at: 'access_rights["orders"].limit.rate' }],
    ['restricted_types', 'User.email', 'policy gold', '/policies/gold/fields', { api: 'orders', f: 'User.email', at: 'fields' }],
    ['restricted_types User', 'email, phone', 'policy gold', '/policies/gold/fields', { api: 'orders', f: 'User.', at: 'fields' }],
    ['field_access_rights Query.me', '2', 'policy gold', '/policies/gold/fields', { api: 'orders', f: 'Query.me', at: 'fields' }],
    ['allowed_urls', 'GET /x', 'policy gold', '/policies/gold', { at: 'access_rights["orders"].allowed_urls' }],
    ['graphql.limits.max_depth', '3', 'the definition', '/apis/orders', { at: 'graphql.limits.max_depth' }],
    ['rate', '1 per 1 s', 'the key', '/keys/abc', { at: 'rate' }],
  ] as const) {
    expect(placesOf({ rule, value, from }, of)).toMatchObject([{ name: from, to, search }]);
  }
});

test('a value has a member in REST, whose changes can be asked for', () => {
  for (const [rule, value, from, object, path] of [
    ['quota', '10 per 60 s', 'policy gold', '/api/policies/gold', 'quota_max'],
    ['rate', '1 per 1 s', 'the entry for the API in policy gold', '/api/policies/gold', 'access_rights["orders"].limit.rate'],
    ['restricted_types', 'User.email', 'policy gold', '/api/policies/gold', 'access_rights["orders"].restricted_types'],
    ['allowed_types User', 'id', 'policy gold', '/api/policies/gold', 'access_rights["orders"].allowed_types'],
    ['graphql.limits.max_depth', '3', 'the definition', '/api/apis/orders', 'graphql.limits.max_depth'],
    ['rate', '1 per 1 s', 'the key', '/api/keys/abc', 'rate'],
  ] as const) {
    expect(placesOf({ rule, value, from }, of)[0]!.member).toEqual({ of: object, path });
  }
});

test('several policies are named one by one, and settings lead nowhere', () => {
  expect(placesOf({ rule: 'access_rights', value: '', from: 'policy a, or policy b' }, of).map((one) => one.to)).toEqual(['/policies/a', '/policies/b']);
  expect(placesOf({ rule: 'restricted_types', value: 'User.email', from: 'policy a, policy b' }, of).map((one) => one.name)).toEqual(['policy a', 'policy b']);
  expect(placesOf({ rule: 'keys.min_length', value: '8', from: 'setting' }, of)).toEqual([{ name: 'setting' }]);
  expect(placesOf({ rule: 'rate', value: '8' }, of)).toEqual([{ name: '' }]);
});

test('the fact that decided is that of the reason, or the first', () => {
  const facts = [{ rule: 'rate', value: '1' }, { rule: 'quota', value: '2' }];
  expect(decidedBy(facts, 'quota_exceeded')).toBe(facts[1]);
  expect(decidedBy(facts, 'depth_limit')).toBe(facts[0]);
  expect(decidedBy(undefined, 'depth_limit')).toBeUndefined();
});

test('a record leads to the field of its policy', () => {
  const record = { api_id: 'orders', policy: 'gold' };
  expect(placeOfRefusal({ ...record, reason: 'depth_limit' })?.search).toEqual({ at: 'max_query_depth' });
  expect(placeOfRefusal({ ...record, reason: 'field_restricted', errors: '{"errors":[{"message":"field: email is restricted on type: User"}]}' })).toEqual({
    name: 'policy gold',
    to: '/policies/gold/fields',
    search: { api: 'orders', f: 'User.email', at: 'fields' },
    member: { of: '/api/policies/gold', path: 'access_rights["orders"].restricted_types' },
  });
  expect(placeOfRefusal({ ...record, reason: 'auth_missing' })).toBeUndefined();
  expect(placeOfRefusal({ api_id: 'orders', reason: 'depth_limit' })).toBeUndefined();
});
