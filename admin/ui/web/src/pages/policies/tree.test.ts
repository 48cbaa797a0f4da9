import { expect, test } from 'vitest';
import { readSchema } from './schema';
import { inMode, modeOf, rowName, rowsOf, sampleOf, setDepth, setField, statesOf, unknownNames, type Rules } from './tree';

const schema = readSchema(`
  schema { query: Root }
  type Root { me: User! node(id: ID!): Node users(first: Int = 5): [User!]! }
  interface Node { id: ID! name: String }
  type User implements Node { id: ID! name: String email: String! orders: [Order] }
  type Order implements Node { id: ID! name: String }
  extend type Order { total: Int }
  type Apart { x: Int }
  input In { id: ID }
  enum Colour { RED }
`);

const edited = (rules: Rules, type: string, field: string | undefined, allow: boolean): Rules => {
  const next = setField(rules, schema, { type, field }, allow);
  if (next.refused) throw new Error(next.refused);
  return next.rules;
};

test('the schema has its types with fields, roots first', () => {
  expect(schema.types.map((type) => type.name)).toEqual(['Root', 'Apart', 'Node', 'Order', 'User']);
  expect(schema.byName.get('Order')!.fields.map((field) => field.name)).toEqual(['id', 'name', 'total']);
  expect(schema.roots).toEqual([['query', 'Root']]);
  expect(schema.byName.get('Root')!.fields.map((field) => field.asks)).toEqual([false, true, false]);
});

test('all but these: restricted_types', () => {
  const rules = edited({}, 'User', 'email', false);
  expect(rules).toEqual({ restricted_types: [{ name: 'User', fields: ['email'] }] });
  const states = statesOf(rules, schema);
  expect([states.allowed('User', 'email'), states.allowed('User', 'id')]).toEqual([false, true]);
  expect(edited(rules, 'User', 'email', true)).toEqual({ restricted_types: undefined });
  const whole = edited(rules, 'User', undefined, false);
  expect(whole.restricted_types).toEqual([{ name: 'User', fields: ['*'] }]);
  expect(statesOf(whole, schema).whole('User')).toBe(true);
  expect(edited(whole, 'User', 'email', true).restricted_types).toEqual([{ name: 'User', fields: ['id', 'name', 'orders'] }]);
});

test('only these: allowed_types, which never becomes empty', () => {
  const rules = edited({ allowed_types: [{ name: 'User', fields: ['id'] }] }, 'Order', 'total', true);
  expect(rules.allowed_types).toEqual([{ name: 'User', fields: ['id'] }, { name: 'Order', fields: ['total'] }]);
  const states = statesOf(rules, schema);
  expect([states.mode, states.allowed('User', 'id'), states.allowed('User', 'email')]).toEqual(['only', true, false]);
  const one = edited(rules, 'Order', 'total', false);
  expect(setField(one, schema, { type: 'User', field: 'id' }, false)).toEqual({ refused: 'last' });
  expect(setField(one, schema, { type: 'User' }, false)).toEqual({ refused: 'last' });
});

test('an allow list counts where both are there', () => {
  const both: Rules = { allowed_types: [{ name: 'User', fields: ['id'] }], restricted_types: [{ name: 'User', fields: ['id'] }] };
  expect(modeOf(both)).toBe('only');
  expect(statesOf(both, schema).allowed('User', 'id')).toBe(true);
  expect(modeOf({ allowed_types: [], restricted_types: null })).toBe('except');
});

test('interfaces and their objects', () => {
  const onObject = statesOf({ restricted_types: [{ name: 'User', fields: ['name'] }] }, schema);
  expect([onObject.allowed('Node', 'name'), onObject.implied('Node', 'name'), onObject.allowed('Order', 'name')]).toEqual([false, true, true]);
  const onInterface = statesOf({ restricted_types: [{ name: 'Node', fields: ['name'] }] }, schema);
  expect([onInterface.allowed('User', 'name'), onInterface.allowed('Order', 'name'), onInterface.allowed('User', 'id')]).toEqual([false, false, true]);
  expect(setField({ restricted_types: [{ name: 'Node', fields: ['name'] }] }, schema, { type: 'User', field: 'name' }, true)).toEqual({ refused: 'implied' });
  const allowed = statesOf({ allowed_types: [{ name: 'User', fields: ['name'] }, { name: 'Order', fields: ['*'] }] }, schema);
  expect([allowed.allowed('Node', 'name'), allowed.allowed('Node', 'id')]).toEqual([true, false]);
});

test('the other mode allows the same', () => {
  const rules: Rules = { restricted_types: [{ name: 'User', fields: ['email', 'name'] }, { name: 'Apart', fields: ['*'] }] };
  const only = inMode(rules, schema, 'only');
  if (only.refused) throw new Error(only.refused);
  expect(only.rules.allowed_types).toContainEqual({ name: 'Root', fields: ['*'] });
  const back = inMode(only.rules, schema, 'except');
  if (back.refused) throw new Error(back.refused);
  const [a, b, c] = [rules, only.rules, back.rules].map((one) => statesOf(one, schema));
  for (const type of schema.types) {
    for (const field of type.fields) {
      const was = a!.allowed(type.name, field.name);
      expect([field.name, b!.allowed(type.name, field.name), c!.allowed(type.name, field.name)]).toEqual([field.name, was, was]);
    }
  }
  const nothing: Rules = { restricted_types: schema.types.map((type) => ({ name: type.name, fields: ['*'] })) };
  expect(inMode(nothing, schema, 'only')).toEqual({ refused: 'last' });
});

test('unknown members and names stay', () => {
  const rules = { restricted_types: [{ name: 'Gone', fields: ['*'] }, { name: 'User', fields: ['old'], x: 1 }] } as Rules;
  const next = edited(rules, 'User', 'email', false);
  expect(next.restricted_types).toEqual([{ name: 'Gone', fields: ['*'] }, { name: 'User', fields: ['old', 'email'], x: 1 }]);
  expect(unknownNames({ ...next, field_access_rights: [{ type_name: 'Root', field_name: 'you', limits: { max_query_depth: 1 } }] }, schema)).toEqual(['Gone', 'User.old', 'Root.you']);
});

test('depths of single fields', () => {
  const rules = setDepth({}, { type: 'User', field: 'orders' }, 3);
  expect(rules.field_access_rights).toEqual([{ type_name: 'User', field_name: 'orders', limits: { max_query_depth: 3 } }]);
  expect(statesOf(rules, schema).depth('User', 'orders')).toBe(3);
  const more = setDepth(setDepth(rules, { type: 'Root', field: 'me' }, -1), { type: 'User', field: 'orders' }, 2);
  expect(more.field_access_rights!.map((one) => one.limits.max_query_depth)).toEqual([2, -1]);
  expect(setDepth(rules, { type: 'User', field: 'orders' }, undefined).field_access_rights).toBeUndefined();
  expect(setDepth({}, { type: 'User', field: 'orders' }, undefined).field_access_rights).toBeUndefined();
});

test('rows with a filter', () => {
  const names = (open: string[], filter: string) => rowsOf(schema, new Set(open), filter).map(rowName);
  expect(names([], '')).toEqual(['Root', 'Apart', 'Node', 'Order', 'User']);
  expect(names(['Apart'], '')).toContain('Apart.x');
  expect(names([], 'MAIL')).toEqual(['User', 'User.email']);
  expect(names([], 'user')).toEqual(['Root', 'Root.users', 'User']);
  expect(names([], 'user.na')).toEqual(['User', 'User.name']);
  expect(names([], 'nothing')).toEqual([]);
});

test('a sample gets to the field', () => {
  expect(sampleOf(schema, 'User', 'email')).toBe('query { me { email } }');
  expect(sampleOf(schema, 'Order', 'total')).toBe('query { me { orders { total } } }');
  expect(sampleOf(schema, 'Root', 'node')).toBe('query { node(…) { … } }');
  expect(sampleOf(schema, 'Apart', 'x')).toBeUndefined();
});

test('a schema of 3,000 types is filtered and judged quickly enough to type', () => {
  const large = readSchema(`type Query { a: T0 }\n${Array.from({ length: 3000 }, (_, n) => `type T${n} { id: ID name: String next: T${n + 1} value${n}: Int }`).join('\n')}`);
  expect(rowsOf(large, new Set(), 'value2999').map(rowName)).toEqual(['T2999', 'T2999.value2999']);
  const only = inMode({}, large, 'only');
  expect(!only.refused && only.rules.allowed_types).toHaveLength(3001);
});
