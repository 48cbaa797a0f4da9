import { expect, test } from 'vitest';
import { accessPath, apiOf, ownPath, tabOf } from './paths';

test('paths of a change are paths of the policy', () => {
  expect(ownPath('policies["a.b\\"c"].rate')).toBe('rate');
  expect(ownPath('policies[0].access_rights["x"].versions[1]')).toBe('access_rights["x"].versions[1]');
  expect(ownPath('policies[0]')).toBe('');
  expect(apiOf(`${accessPath('my."api')}.limit.rate`)).toBe('my."api');
  expect(apiOf('rate')).toBeUndefined();
});

test('each path has its tab', () => {
  const tabs = { 'rate': 'overview', 'partitions.acl': 'overview', 'tags[1]': 'overview', 'meta_data.a': 'raw', '': 'raw', 'access_rights["x"].limit.rate': 'apis', 'access_rights["x"].restricted_types[0].name': 'fields' };
  for (const [path, tab] of Object.entries(tabs)) expect([path, tabOf(path)]).toEqual([path, tab]);
});
