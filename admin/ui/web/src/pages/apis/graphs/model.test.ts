import { expect, test } from 'vitest';
import { composedBody, definitionsOf, freeName, marksOf, membersOf, offsetOfLine, searched, subjectOf } from './compose';
import { attach, canHave, configAt, fieldsOf, mappingOf, nameOf, newSource, ownersOf, variablesOf, withMapping, type Source } from './sources';

test('what is no subgraph counts as an empty one', () => {
  expect(membersOf(undefined)).toEqual([]);
  expect(membersOf([{ name: 'a' }, null, 'b', []])).toEqual([{ name: 'a' }, {}, {}, {}]);
  expect(JSON.parse(composedBody([{ name: 'a', api_id: '', sdl: 'type Query' }, { api_id: 'x', url: 'http://x' }]))).toEqual({ subgraphs: [{ name: 'a', sdl: 'type Query' }, { name: '', api_id: 'x' }] });
});

test('a problem is marked at each of its lines in the schema of a subgraph', () => {
  const problem = { code: 'FIELD_TYPE_MISMATCH', message: 'the fields differ', detail: 'ID and Int', type: 'User', field: 'id', places: [{ subgraph: 'a', line: 2 }, { subgraph: 'b', line: 7 }, { subgraph: 'a', line: 9 }] };
  expect(marksOf([problem]).get('a')).toEqual([
    { line: 2, message: 'FIELD_TYPE_MISMATCH: the fields differ: ID and Int' },
    { line: 9, message: 'FIELD_TYPE_MISMATCH: the fields differ: ID and Int' },
  ]);
  expect(marksOf([{ code: 'NO_SUBGRAPHS', message: 'none', places: null }]).size).toBe(0);
  expect(subjectOf(problem)).toBe('User.id');
  expect(subjectOf({ code: 'A', message: '', type: 'User' })).toBe('User');
});

test('a merged schema is searched by definition', () => {
  const sdl = 'type Query {\n  me: User\n}\n\n"""\nA person.\n\nWith an e-mail.\n"""\ntype User {\n  mail: String\n}\n\nscalar Any';
  expect(definitionsOf(sdl)).toHaveLength(3);
  expect(searched(sdl, 'E-MAIL')).toEqual({ sdl: definitionsOf(sdl)[1], found: 1, of: 3 });
  expect(searched(sdl, '').sdl).toBe(sdl);
  expect(searched(sdl, 'none')).toEqual({ sdl: '', found: 0, of: 3 });
});

test('names and lines', () => {
  expect(freeName('a', ['a', 'a-2'])).toBe('a-3');
  expect(['ab\ncd\n\ne'].flatMap((text) => [1, 2, 3, 4].map((line) => offsetOfLine(text, line)))).toEqual([0, 3, 6, 7]);
});

const schema = `
type User { id: ID! name(long: Boolean): String at: Place todos(first: Int, after: ID): [Todo!]! }
type Place { city: String }
type Todo { id: ID! text: String }
type Query { user(id: ID!): User, users: [User] }
type Subscription { added: User }
extend type User { mail: String }
interface Any { id: ID }`;

test('fields of object types are listed, those of root types first', () => {
  const { fields } = fieldsOf(schema);
  expect(fields.map((one) => `${nameOf(one)}${one.signature}`).slice(0, 5)).toEqual(['Query.user(id: ID!): User', 'Query.users: [User]', 'Subscription.added: User', 'User.id: ID!', 'User.name(long: Boolean): String']);
  expect(fields.filter((one) => !one.leaf).map(nameOf)).toEqual(['Query.user', 'Query.users', 'Subscription.added', 'User.at', 'User.todos']);
  expect(fieldsOf('schema { query: Q } type Q { a: Int } type Query { b: Int }').fields.map((one) => `${nameOf(one)} ${one.root}`)).toEqual(['Q.a query', 'Query.b ']);
  expect(fieldsOf(' ')).toEqual({ fields: [] });
  expect(fieldsOf('type {').problem).toMatch(/Syntax Error/);
});

const source = (kind: string, ...fields: [string, string[]][]): Source => ({ kind, name: kind, root_fields: fields.map(([type, names]) => ({ type, fields: names })), config: {} });

test('a field moves from one source to another, and away', () => {
  const sources = [source('GraphQL', ['Query', ['user', 'users']]), source('REST', ['User', ['todos']])];
  expect(ownersOf(sources).get('User.todos')).toBe(1);
  expect([...attach(sources, { type: 'Query', name: 'users' }, 1)]).toEqual([
    [0, [{ type: 'Query', fields: ['user'] }]],
    [1, [{ type: 'User', fields: ['todos'] }, { type: 'Query', fields: ['users'] }]],
  ]);
  expect([...attach(sources, { type: 'User', name: 'todos' }, undefined)]).toEqual([[1, []]]);
  expect([...attach(sources, { type: 'User', name: 'todos' }, 1)]).toEqual([]);
  expect([...attach(sources, { type: 'User', name: 'mail' }, 1)]).toEqual([[1, [{ type: 'User', fields: ['todos', 'mail'] }]]]);
});

test('GraphQL sources have root fields only, REST sources no subscriptions, and message brokers nothing else', () => {
  const { fields } = fieldsOf(schema);
  const may = (kind: string) => fields.filter((one) => canHave(source(kind), one)).map(nameOf);
  expect(may('GraphQL')).toEqual(['Query.user', 'Query.users', 'Subscription.added']);
  expect(may('REST')).not.toContain('Subscription.added');
  expect(may('REST')).toContain('User.todos');
  expect(may('msgbroker')).toEqual(['Subscription.added']);
});

test('variables are those that each field of a source has', () => {
  const { fields } = fieldsOf(schema);
  expect(variablesOf(source('REST', ['User', ['todos']]), fields)).toEqual(['{{.arguments.first}}', '{{.arguments.after}}', '{{.object.id}}', '{{.object.mail}}', '{{.request.headers.Name}}']);
  expect(variablesOf(source('REST', ['Query', ['user', 'users']]), fields)).toEqual(['{{.request.headers.Name}}']);
  expect(variablesOf(source('GraphQL', ['Query', ['user']]), fields)).toEqual(['{{.request.headers.Name}}']);
  const own: Source = { ...source('GraphQL', ['User', ['todos']]), config: { has_operation: true } };
  expect(variablesOf(own, fields)).toContain('{{.object.id}}');
  expect(fields.filter((one) => canHave(own, one) !== canHave(source('REST'), one))).toEqual([]);
});

test('a mapping that says nothing has no entry', () => {
  const field = { type: 'User', name: 'mail' };
  const configs = [{ type_name: 'User', field_name: 'id' }, { type_name: 'User', field_name: 'mail', path: ['a', '0'] }];
  expect(configAt(configs, field)).toBe(1);
  expect(configAt(undefined, field)).toBe(-1);
  expect(mappingOf(configs[1])).toEqual({ whole: false, path: ['a', '0'] });
  expect(withMapping(configs[1], field, { whole: false, path: [] })).toBeUndefined();
  expect(withMapping(undefined, field, { whole: true, path: ['a'] })).toEqual({ type_name: 'User', field_name: 'mail', disable_default_mapping: true });
  expect(withMapping({ ...configs[1], note: 1 }, field, { whole: false, path: [] })).toEqual({ type_name: 'User', field_name: 'mail', note: 1 });
});

test('a new source has the field that it is made for', () => {
  expect(newSource('REST', 'users', fieldsOf(schema).fields[0])).toEqual({ kind: 'REST', name: 'users', root_fields: [{ type: 'Query', fields: ['user'] }], config: { url: '', method: 'GET' } });
  expect(newSource('GraphQL', 'g', undefined).root_fields).toBeUndefined();
});
