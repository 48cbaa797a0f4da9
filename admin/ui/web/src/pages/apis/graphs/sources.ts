// A data graph in a draft: the fields of its schema, and the sources that have their values.
import { Kind, parse, print, type DocumentNode, type FieldDefinitionNode } from 'graphql';
import type { components } from '../../../api.gen';

export type Source = components['schemas']['GraphQLDataSource'];
export type RootFields = components['schemas']['GraphQLRootFields'];
export type FieldConfig = components['schemas']['GraphQLFieldConfig'];

export const enginePath = 'graphql.engine';
export const sourcesPath = `${enginePath}.data_sources`;
export const configsPath = `${enginePath}.field_configs`;

/** A field of an object type. */
export interface SchemaField {
  type: string;
  name: string;
  /** (id: ID!): User */
  signature: string;
  args: string[];
  /** A field of the query, mutation or subscription type: it must have a source. */
  root: '' | 'query' | 'mutation' | 'subscription';
  /** Its values have no fields themselves. */
  leaf: boolean;
}

export const nameOf = (field: { type: string; name: string }) => `${field.type}.${field.name}`;

const listOf = <T>(value: unknown): T[] => (Array.isArray(value) ? (value as unknown[]).filter((one) => typeof one === 'object' && one !== null) : []) as T[];

export const sourcesOf = (value: unknown) => listOf<Source>(value);

/** The fields of all object types, those of the root types first; what is no schema has a problem. */
export function fieldsOf(sdl: string): { fields: SchemaField[]; problem?: string } {
  if (!sdl.trim()) return { fields: [] };
  let document: DocumentNode;
  try {
    document = parse(sdl);
  } catch (cause) {
    return { fields: [], problem: cause instanceof Error ? cause.message : String(cause) };
  }
  const roots = new Map<string, SchemaField['root']>([
    ['Query', 'query'],
    ['Mutation', 'mutation'],
    ['Subscription', 'subscription'],
  ]);
  const composite = new Set<string>();
  for (const one of document.definitions) {
    if (one.kind === Kind.SCHEMA_DEFINITION || one.kind === Kind.SCHEMA_EXTENSION) {
      if (one.kind === Kind.SCHEMA_DEFINITION) roots.clear();
      for (const operation of one.operationTypes ?? []) roots.set(operation.type.name.value, operation.operation);
    } else if (one.kind === Kind.OBJECT_TYPE_DEFINITION || one.kind === Kind.INTERFACE_TYPE_DEFINITION || one.kind === Kind.UNION_TYPE_DEFINITION) composite.add(one.name.value);
  }
  const fields = document.definitions.flatMap((one) =>
    one.kind === Kind.OBJECT_TYPE_DEFINITION || one.kind === Kind.OBJECT_TYPE_EXTENSION ? (one.fields ?? []).map((field) => fieldOf(one.name.value, field, roots, composite)) : [],
  );
  const order = ['query', 'mutation', 'subscription', ''];
  return { fields: fields.sort((a, b) => order.indexOf(a.root) - order.indexOf(b.root)) };
}

function fieldOf(type: string, field: FieldDefinitionNode, roots: Map<string, SchemaField['root']>, composite: Set<string>): SchemaField {
  const args = (field.arguments ?? []).map((one) => one.name.value);
  const signed = (field.arguments ?? []).map((one) => `${one.name.value}: ${print(one.type)}`).join(', ');
  const named = print(field.type).replace(/[[\]!]/g, '');
  return { type, name: field.name.value, signature: `${signed && `(${signed})`}: ${print(field.type)}`, args, root: roots.get(type) ?? '', leaf: !composite.has(named) };
}

/** The source of each field, by Type.field: its place in the list. The first that names a field has it. */
export function ownersOf(sources: Source[]): Map<string, number> {
  const owners = new Map<string, number>();
  sources.forEach((source, i) => {
    for (const { type = '', name } of attached(source)) if (!owners.has(`${type}.${name}`)) owners.set(`${type}.${name}`, i);
  });
  return owners;
}

/** The fields that a source names. */
export function attached(source: Source): { type: string; name: string }[] {
  return listOf<RootFields>(source.root_fields).flatMap((one) => (one.fields ?? []).map((name) => ({ type: one.type ?? '', name })));
}

/** The root_fields of a source with a field. */
export function withField(source: Source, field: { type: string; name: string }): RootFields[] {
  const all = listOf<RootFields>(source.root_fields);
  const at = all.findIndex((one) => one.type === field.type);
  if (at < 0) return [...all, { type: field.type, fields: [field.name] }];
  return all.with(at, { ...all[at], fields: [...(all[at]!.fields ?? []), field.name] });
}

/** The root_fields of a source without a field. */
export function withoutField(source: Source, field: { type: string; name: string }): RootFields[] {
  return listOf<RootFields>(source.root_fields)
    .map((one) => (one.type === field.type ? { ...one, fields: (one.fields ?? []).filter((name) => name !== field.name) } : one))
    .filter((one) => (one.fields ?? []).length > 0);
}

/** What changes when a source gets a field, or none has it: the root_fields by place in the list. */
export function attach(sources: Source[], field: { type: string; name: string }, to: number | undefined): Map<number, RootFields[]> {
  const changes = new Map<number, RootFields[]>();
  sources.forEach((source, i) => {
    const has = attached(source).some((one) => one.type === field.type && one.name === field.name);
    if (has && i !== to) changes.set(i, withoutField(source, field));
    if (!has && i === to) changes.set(i, withField(source, field));
  });
  return changes;
}

export const kinds = ['REST', 'GraphQL', 'msgbroker'] as const;
export type SourceKind = (typeof kinds)[number];

/** The kind of a source; one that is not known counts as REST. */
export const kindOf = (source: Source): SourceKind => kinds.find((one) => one === source.kind) ?? 'REST';

/** Whether the requests to a source are made of texts with variables, one for each value. */
export const isTemplated = (source: Source) => kindOf(source) === 'REST' || (source.kind === 'GraphQL' && source.config?.has_operation === true);

/** Whether a source may have the values of a field. */
export function canHave(source: Source, field: SchemaField): boolean {
  if (source.kind === 'msgbroker') return field.root === 'subscription';
  return isTemplated(source) ? field.root !== 'subscription' : field.root !== '';
}

/** Whether the value of a field with a source is taken from responses by a mapping. */
export const isMapped = (source: Source | undefined) => source?.kind === 'REST' || source?.kind === 'msgbroker';

/** The variables that texts of a source may have: those that each of its fields has. */
export function variablesOf(source: Source, fields: SchemaField[]): string[] {
  const header = '{{.request.headers.Name}}';
  if (!isTemplated(source)) return [header];
  const own = attached(source).flatMap(({ type, name }) => fields.filter((one) => one.type === type && one.name === name));
  const inEach = (lists: string[][]) => (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)));
  const args = inEach(own.map((one) => one.args)).map((name) => `{{.arguments.${name}}}`);
  const beside = inEach(own.map((one) => (one.root ? [] : fields.filter((other) => other.type === one.type && other.leaf && other.args.length === 0 && other.name !== one.name).map((other) => other.name))));
  return [...args, ...beside.map((name) => `{{.object.${name}}}`), header];
}

/** Where the entry of a field is in field_configs; -1: it has none. */
export function configAt(configs: unknown, field: { type: string; name: string }): number {
  return (Array.isArray(configs) ? (configs as FieldConfig[]) : []).findIndex((one) => one?.type_name === field.type && one.field_name === field.name);
}

/** Where the value of a field is: a member of the response or of the value above it, or all of that. */
export interface Mapping {
  whole: boolean;
  path: string[];
}

export function mappingOf(config: FieldConfig | undefined): Mapping {
  return { whole: config?.disable_default_mapping ?? false, path: config?.path ?? [] };
}

/** The entry of a field with another mapping; undefined where none is needed. */
export function withMapping(config: FieldConfig | undefined, field: { type: string; name: string }, mapping: Mapping): FieldConfig | undefined {
  const { disable_default_mapping: _whole, path: _path, ...rest } = config ?? {};
  const more = Object.keys(rest).some((name) => name !== 'type_name' && name !== 'field_name');
  if (!mapping.whole && mapping.path.length === 0 && !more) return undefined;
  return { ...rest, type_name: field.type, field_name: field.name, ...(mapping.whole && { disable_default_mapping: true }), ...(mapping.path.length > 0 && !mapping.whole && { path: mapping.path }) };
}

/** A source to begin with. */
export function newSource(kind: SourceKind, name: string, field: SchemaField | undefined): Source {
  const root_fields = field && { root_fields: [{ type: field.type, fields: [field.name] }] };
  if (kind === 'msgbroker') return { kind, name, ...root_fields, config: {} };
  return { kind, name, ...root_fields, config: { url: '', method: kind === 'REST' ? 'GET' : 'POST' } };
}
