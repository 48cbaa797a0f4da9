import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { measure, noLimits, operationsOf } from './meter';

const schema = buildSchema(`
  type Query { a: Int pets(first: Int): [Pet!]! pet: Pet node: Node }
  interface Node { friends(last: Int): [Pet] }
  type Pet implements Node { name: String friend: Pet friends(last: Int): [Pet] }`);

const depth = (text: string, more = {}) => measure(text, '', undefined, schema, { ...noLimits, ...more })?.depth;
const cost = (text: string, variables?: unknown, more = {}) => measure(text, '', variables, schema, { ...noLimits, ...more })?.cost;

test('depth is counted as the gateway does', () => {
  expect(depth('{ a }')).toBe(2);
  expect(depth('{ pet { name } }')).toBe(3);
  expect(depth('{ pet { name } }', { depthBase: 0 })).toBe(2);
  expect(depth('{ ...F } fragment F on Query { pet { ... on Pet { friend { name } } } }')).toBe(4);
  expect(depth('{ pet { __typename } }')).toBe(2);
  expect(depth('{ x: pet { n: name } a }')).toBe(3);
  expect(depth('{')).toBeUndefined();
});

test('a fragment within itself ends', () => {
  expect(depth('{ pet { ...F } } fragment F on Pet { ...F }')).toBe(2);
});

test('a root field has a limit of its own', () => {
  const limits = { ...noLimits, maxDepth: 9, fieldDepths: [{ type_name: 'Query', field_name: 'pet', max_query_depth: 2 }] };
  expect(measure('{ pet { friend { name } } pets { name } }', '', undefined, schema, limits)).toMatchObject({ depth: 3, maxDepth: 2 });
  expect(measure('{ pets { friend { name } } }', '', undefined, schema, limits)).toMatchObject({ depth: 4, maxDepth: 9 });
});

test('cost is fields times the sizes of lists', () => {
  expect(cost('{ a }')).toBe(1);
  expect(cost('{ pets(first: 3) { name friend { name } } }')).toBe(10);
  expect(cost('{ pets { name } }')).toBe(11);
  expect(cost('{ pets { name } }', undefined, { listSize: 100 })).toBe(101);
  expect(cost('query ($n: Int = 2) { pets(first: $n) { name } }')).toBe(3);
  expect(cost('query ($n: Int = 2) { pets(first: $n) { name } }', { n: 5 })).toBe(6);
  expect(cost('{ node { friends(last: 4) { name } ... on Pet { friends(last: 4) { name } } } }')).toBe(11);
});

test('operations are found by their names', () => {
  expect(operationsOf('query A { a } query B { a } fragment F on Query { a }')).toEqual(['A', 'B']);
  expect(operationsOf('{ a')).toEqual([]);
});
