// The field rules of an access entry, and what they come to on a schema. Lists are edited
// entry by entry: members that are not known here, and names that the schema lacks, stay.

export interface TypeFields {
  name: string;
  fields: string[];
}

export interface FieldAccess {
  type_name: string;
  field_name: string;
  limits: { max_query_depth: number };
}

/** The part of an access entry that is about fields. */
export interface Rules {
  restricted_types?: TypeFields[] | null;
  allowed_types?: TypeFields[] | null;
  field_access_rights?: FieldAccess[] | null;
}

export interface Field {
  name: string;
  /** "User.email" */
  path: string;
  /** The name in lower case, for the filter. */
  lower: string;
  /** Named type of the field. */
  of: string;
  /** It has arguments that must be given. */
  asks: boolean;
}

export interface Type {
  name: string;
  lower: string;
  kind: 'object' | 'interface';
  interfaces: string[];
  fields: Field[];
}

export interface Schema {
  types: Type[];
  byName: Map<string, Type>;
  /** Names of the types that operations begin with, by operation. */
  roots: [operation: 'query' | 'mutation' | 'subscription', type: string][];
}

/** all but these are allowed (restricted_types), or only these (allowed_types). */
export type Mode = 'except' | 'only';

export const modeOf = (rules: Rules): Mode => ((rules.allowed_types ?? []).length > 0 ? 'only' : 'except');

const key = (type: string, field: string) => `${type}.${field}`;

/** What a list names, with * as all fields of the schema. */
function namedBy(list: TypeFields[], schema: Schema): { fields: Set<string>; whole: Set<string> } {
  const fields = new Set<string>();
  const whole = new Set<string>();
  for (const entry of list) {
    for (const name of entry.fields) {
      if (name !== '*') {
        fields.add(key(entry.name, name));
        continue;
      }
      whole.add(entry.name);
      schema.byName.get(entry.name)?.fields.forEach((field) => fields.add(key(entry.name, field.name)));
    }
  }
  return { fields, whole };
}

export interface States {
  mode: Mode;
  /** Whether calls may select the field. */
  allowed: (type: string, field: string) => boolean;
  /** Whether that follows from another type: an interface of it, or one that has it. */
  implied: (type: string, field: string) => boolean;
  /** Levels below the field; undefined: it has no limit of its own. */
  depth: (type: string, field: string) => number | undefined;
  /** Whether the list names every field of the type by *. */
  whole: (type: string) => boolean;
}

/** What the rules come to, with what holds for interfaces through their objects and the other way round. */
export function statesOf(rules: Rules, schema: Schema): States {
  const mode = modeOf(rules);
  const { fields: named, whole } = namedBy((mode === 'only' ? rules.allowed_types : rules.restricted_types) ?? [], schema);
  const closed = mode === 'only' ? closeAllowed(named, schema) : closeRestricted(named, schema);
  const depths = new Map((rules.field_access_rights ?? []).map((one) => [key(one.type_name, one.field_name), one.limits?.max_query_depth || undefined]));
  return {
    mode,
    allowed: (type, field) => closed.has(key(type, field)) === (mode === 'only'),
    implied: (type, field) => closed.has(key(type, field)) && !named.has(key(type, field)),
    depth: (type, field) => depths.get(key(type, field)),
    whole: (type) => whole.has(type),
  };
}

function objectsOf(schema: Schema): Map<string, Type[]> {
  const objects = new Map<string, Type[]>();
  for (const type of schema.types) {
    if (type.kind !== 'object') continue;
    for (const name of type.interfaces) objects.set(name, [...(objects.get(name) ?? []), type]);
  }
  return objects;
}

/** A field of an interface passes too if every object has it on the list. */
function closeAllowed(named: Set<string>, schema: Schema): Set<string> {
  const all = new Set(named);
  for (const [name, objects] of objectsOf(schema)) {
    for (const field of schema.byName.get(name)?.fields ?? []) {
      if (objects.every((object) => named.has(key(object.name, field.name)))) all.add(key(name, field.name));
    }
  }
  return all;
}

/** A refused field of an interface is refused on its objects, and one of an object on its interfaces. */
function closeRestricted(named: Set<string>, schema: Schema): Set<string> {
  const objects = new Set(named);
  for (const [name, of] of objectsOf(schema)) {
    for (const field of schema.byName.get(name)?.fields ?? []) {
      if (named.has(key(name, field.name))) of.forEach((object) => objects.add(key(object.name, field.name)));
    }
  }
  const all = new Set(objects);
  for (const type of schema.types) {
    if (type.kind !== 'object' || type.interfaces.length === 0) continue;
    for (const field of type.fields) {
      if (!objects.has(key(type.name, field.name))) continue;
      for (const name of type.interfaces) {
        if (schema.byName.get(name)?.fields.some((one) => one.name === field.name)) all.add(key(name, field.name));
      }
    }
  }
  return all;
}

const memberOf = { except: 'restricted_types', only: 'allowed_types' } as const;

/** Why a change is not made. */
export type Refusal = 'last' | 'implied';

type Edited = { rules: Rules; refused?: undefined } | { refused: Refusal };

/**
 * Allows or restricts one field, or with field undefined all fields of the type. Emptying
 * the list of what alone is allowed is refused, since an empty list allows everything; so
 * is a change without effect, because another type decides.
 */
export function setField(rules: Rules, schema: Schema, at: { type: string; field?: string }, allow: boolean): Edited {
  const mode = modeOf(rules);
  const member = memberOf[mode];
  const list = withFields(rules[member] ?? [], schema, at, allow === (mode === 'only'));
  if (mode === 'only' && list.length === 0) return { refused: 'last' };
  const next: Rules = { ...rules, [member]: list.length > 0 ? list : undefined };
  if (at.field !== undefined && statesOf(next, schema).allowed(at.type, at.field) !== allow) return { refused: 'implied' };
  return { rules: next };
}

/** The list with a field, or all fields of a type, on it or not. */
function withFields(list: TypeFields[], schema: Schema, at: { type: string; field?: string }, on: boolean): TypeFields[] {
  const index = list.findIndex((entry) => entry.name === at.type);
  const entry = list[index];
  const every = schema.byName.get(at.type)?.fields.map((field) => field.name) ?? [];
  let fields: string[];
  if (at.field === undefined) fields = on ? ['*'] : [];
  else if (on) fields = entry?.fields.includes('*') || entry?.fields.includes(at.field) ? entry.fields : [...(entry?.fields ?? []), at.field];
  else fields = (entry?.fields.includes('*') ? every : (entry?.fields ?? [])).filter((name) => name !== at.field);
  if (!entry) return fields.length > 0 ? [...list, { name: at.type, fields }] : list;
  return fields.length > 0 ? list.with(index, { ...entry, fields }) : list.toSpliced(index, 1);
}

/** The rules in the other mode, with the same fields allowed by this schema. */
export function inMode(rules: Rules, schema: Schema, mode: Mode): Edited {
  if (modeOf(rules) === mode) return { rules };
  const states = statesOf(rules, schema);
  const objects = objectsOf(schema);
  // A restricted field of an interface would be restricted on all of its objects.
  const listed = (type: Type, field: Field) =>
    mode === 'only' ? states.allowed(type.name, field.name) : !states.allowed(type.name, field.name) && (objects.get(type.name) ?? []).every((object) => !states.allowed(object.name, field.name));
  const list = schema.types.flatMap((type): TypeFields[] => {
    const fields = type.fields.filter((field) => listed(type, field)).map((field) => field.name);
    if (fields.length === 0) return [];
    return [{ name: type.name, fields: fields.length === type.fields.length ? ['*'] : fields }];
  });
  if (mode === 'only' && list.length === 0) return { refused: 'last' };
  return { rules: { ...rules, restricted_types: undefined, allowed_types: undefined, [memberOf[mode]]: list.length > 0 ? list : undefined } };
}

/** Gives a field a depth of its own; undefined takes it away. */
export function setDepth(rules: Rules, at: { type: string; field: string }, depth: number | undefined): Rules {
  const list = rules.field_access_rights ?? [];
  const index = list.findIndex((one) => one.type_name === at.type && one.field_name === at.field);
  const entry = list[index];
  let next = list;
  if (!depth) next = index < 0 ? list : list.toSpliced(index, 1);
  else if (entry) next = list.with(index, { ...entry, limits: { ...entry.limits, max_query_depth: depth } });
  else next = [...list, { type_name: at.type, field_name: at.field, limits: { max_query_depth: depth } }];
  return { ...rules, field_access_rights: next.length > 0 ? next : undefined };
}

/** Names in the rules that the schema lacks: "User", "User.email". */
export function unknownNames(rules: Rules, schema: Schema): string[] {
  const names = new Set<string>();
  const look = (type: string, field: string) => {
    const found = schema.byName.get(type);
    if (!found) names.add(type);
    else if (field !== '*' && !found.fields.some((one) => one.name === field)) names.add(key(type, field));
  };
  for (const entry of [...(rules.restricted_types ?? []), ...(rules.allowed_types ?? [])]) entry.fields.forEach((field) => look(entry.name, field));
  for (const one of rules.field_access_rights ?? []) look(one.type_name, one.field_name);
  return [...names];
}

export interface Row {
  type: Type;
  /** undefined: the row of the type. */
  field?: Field;
  /** Position among its siblings, from 1, and how many there are. */
  at: number;
  of: number;
  open: boolean;
}

export const rowName = (row: Row) => row.field?.path ?? row.type.name;

/** The rows in sight: with a filter, the types whose name has it and the fields that have it. */
export function rowsOf(schema: Schema, open: ReadonlySet<string>, filter: string): Row[] {
  const wanted = filter.trim().toLowerCase();
  const [ofType = '', ofField] = wanted.includes('.') ? wanted.split('.', 2) : [wanted];
  const has = (one: { lower: string }, part: string) => one.lower.includes(part);
  const groups: { type: Type; fields: Field[]; open: boolean }[] = [];
  for (const type of schema.types) {
    if (!wanted) {
      groups.push({ type, fields: open.has(type.name) ? type.fields : [], open: open.has(type.name) });
      continue;
    }
    const named = has(type, ofType);
    const fields = ofField === undefined ? type.fields.filter((field) => has(field, wanted)) : named ? type.fields.filter((field) => has(field, ofField)) : [];
    const unfolded = open.has(type.name) && named && ofField === undefined;
    if (fields.length > 0 || (named && ofField === undefined)) groups.push({ type, fields: unfolded ? type.fields : fields, open: unfolded || fields.length > 0 });
  }
  return groups.flatMap(({ type, fields, open: isOpen }, at) => [
    { type, at: at + 1, of: groups.length, open: isOpen },
    ...fields.map((field, n) => ({ type, field, at: n + 1, of: fields.length, open: false })),
  ]);
}

/** The shortest operation that selects a field; undefined: no operation gets there. */
export function sampleOf(schema: Schema, type: string, field: string): string | undefined {
  const from = new Map<string, { type: string; field: Field } | undefined>();
  const queue: string[] = [];
  for (const [, root] of schema.roots) {
    if (from.has(root)) continue;
    from.set(root, undefined);
    queue.push(root);
  }
  const narrower = objectsOf(schema);
  for (let at = 0; at < queue.length && !from.has(type); at++) {
    for (const one of schema.byName.get(queue[at]!)?.fields ?? []) {
      if (from.has(one.of) || !schema.byName.has(one.of)) continue;
      from.set(one.of, { type: queue[at]!, field: one });
      queue.push(one.of);
    }
  }
  if (!from.has(type)) {
    // By a fragment on an object of an interface that can be reached.
    const wide = [...narrower].find(([name, objects]) => from.has(name) && objects.some((object) => object.name === type));
    return wide ? around(schema, from, wide[0], `... on ${type} { ${leaf(schema, type, field)} }`) : undefined;
  }
  return around(schema, from, type, leaf(schema, type, field));
}

const call = (field: Field) => (field.asks ? `${field.name}(…)` : field.name);

function leaf(schema: Schema, type: string, field: string): string {
  const found = schema.byName.get(type)?.fields.find((one) => one.name === field);
  if (!found) return field;
  return schema.byName.has(found.of) ? `${call(found)} { … }` : call(found);
}

function around(schema: Schema, from: Map<string, { type: string; field: Field } | undefined>, type: string, inner: string): string {
  let text = inner;
  let now = type;
  for (let step = from.get(now); step; step = from.get(now)) {
    text = `${call(step.field)} { ${text} }`;
    now = step.type;
  }
  const operation = schema.roots.find(([, root]) => root === now)?.[0] ?? 'query';
  return `${operation} { ${text} }`;
}
