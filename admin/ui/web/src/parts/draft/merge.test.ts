import { expect, test } from 'vitest';
import { changes, copyAt, merge, parse, pathOf, pathText, pretty, setAt, valueOf } from './merge';

const base = `{
  "name": "gold",
  "x_foreign": {"b": 1, "a": 12345678901234567890},
  "rate": 100,
  "access": {"countries": {"limit": null}},
  "tags": ["a"]
}
`;

test('a change touches one member only', () => {
  const text = setAt(base, ['rate'], 20);
  expect(text).toBe(base.replace('100', '20'));
  expect(setAt(text, ['rate'], undefined)).not.toContain('rate');
  expect(setAt(base, ['access', 'countries', 'limit'], 5)).toContain('12345678901234567890');
  expect(setAt('{"a":1}', ['b'], 2)).toBe('{"a":1,"b": 2}');
  expect(pretty('{"a":12345678901234567890,"b":[1]}')).toBe('{\n  "a": 12345678901234567890,\n  "b": [\n    1\n  ]\n}');
});

test('a large value is laid out as a small one', () => {
  const list = Array.from({ length: 400 }, (_, n) => ({ name: `T${n}`, fields: ['a', 'b'] }));
  const small = setAt(base, ['access', 'countries', 'limit'], list.slice(0, 2));
  const large = setAt(base, ['access', 'countries', 'limit'], list);
  expect(large.slice(0, 100)).toBe(small.slice(0, 100));
  expect(JSON.parse(large).access.countries.limit).toEqual(list);
  expect(large).toContain('12345678901234567890');
  expect(JSON.parse(setAt('{"a":1}', ['b'], list))).toEqual({ a: 1, b: list });
});

test('differences are at the deepest member', () => {
  const value = (text: string) => valueOf(parse(text).tree, text);
  expect(changes(value(base), value(setAt(base, ['access', 'countries', 'limit'], 5)))).toEqual([{ path: ['access', 'countries', 'limit'], before: null, after: 5 }]);
  expect(changes(value(base), value(base.replace('12345678901234567890', '12345678901234567891')))).toHaveLength(1);
});

test('disjoint changes merge, and both stay', () => {
  const merged = merge(base, setAt(base, ['rate'], 20), setAt(base, ['name'], 'platinum'));
  expect(merged.conflicts).toEqual([]);
  expect(merged.taken).toEqual([{ path: ['name'], before: 'gold', after: 'platinum' }]);
  expect(merged.text).toBe(base.replace('100', '20').replace('gold', 'platinum'));
});

test('what both changed asks', () => {
  const merged = merge(base, setAt(base, ['rate'], 20), setAt(base, ['rate'], 30));
  expect(merged.conflicts).toEqual([{ path: ['rate'], base: 100, mine: 20, theirs: 30 }]);
  const inside = merge(base, setAt(base, ['access', 'countries', 'limit'], 5), setAt(base, ['access', 'countries'], undefined));
  expect(inside.conflicts).toHaveLength(1);
  expect(inside.conflicts[0]!.path).toEqual(['access', 'countries']);
  expect(merge(base, setAt(base, ['rate'], 7), setAt(base, ['rate'], 7)).conflicts).toEqual([]);
});

test('a copied member keeps its digits', () => {
  const from = base.replace('12345678901234567890', '98765432109876543210');
  expect(copyAt(base, from, ['x_foreign', 'a'])).toContain('98765432109876543210');
});

test('paths are written as the server writes them', () => {
  expect(pathText(['proxy', 'targets', 2, 'url'])).toBe('proxy.targets[2].url');
  expect(pathOf('proxy.targets[2].url')).toEqual(['proxy', 'targets', 2, 'url']);
});

test('a text that does not parse has a line', () => {
  expect(parse('{\n  "a": ,\n}').problem).toMatchObject({ line: 2 });
});
