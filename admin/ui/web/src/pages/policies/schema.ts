// Reads the types with fields out of a schema as text. It is in the chunk of the tree,
// since it needs the GraphQL parser.
import { Kind, parse, type FieldDefinitionNode, type TypeNode } from 'graphql';
import type { Field, Schema, Type } from './tree';

function nameOf(type: TypeNode): string {
  return type.kind === Kind.NAMED_TYPE ? type.name.value : nameOf(type.type);
}

function fieldOf(type: string, node: FieldDefinitionNode): Field {
  const asks = (node.arguments ?? []).some((one) => one.type.kind === Kind.NON_NULL_TYPE && !one.defaultValue);
  const name = node.name.value;
  return { name, path: `${type}.${name}`, lower: name.toLowerCase(), of: nameOf(node.type), asks };
}

/** The object and interface types of a schema, with those of its extensions. Throws where the text is no schema. */
export function readSchema(text: string): Schema {
  const byName = new Map<string, Type>();
  const roots = new Map<'query' | 'mutation' | 'subscription', string>();
  for (const node of parse(text, { noLocation: true }).definitions) {
    switch (node.kind) {
      case Kind.SCHEMA_DEFINITION:
      case Kind.SCHEMA_EXTENSION:
        for (const one of node.operationTypes ?? []) roots.set(one.operation, one.type.name.value);
        break;
      case Kind.OBJECT_TYPE_DEFINITION:
      case Kind.OBJECT_TYPE_EXTENSION:
      case Kind.INTERFACE_TYPE_DEFINITION:
      case Kind.INTERFACE_TYPE_EXTENSION: {
        const kind = node.kind === Kind.OBJECT_TYPE_DEFINITION || node.kind === Kind.OBJECT_TYPE_EXTENSION ? 'object' : 'interface';
        const type = byName.get(node.name.value) ?? { name: node.name.value, lower: node.name.value.toLowerCase(), kind, interfaces: [], fields: [] };
        byName.set(type.name, type);
        type.interfaces.push(...(node.interfaces ?? []).map((one) => one.name.value));
        type.fields.push(...(node.fields ?? []).map((one) => fieldOf(type.name, one)));
      }
    }
  }
  if (roots.size === 0) {
    for (const [operation, name] of [['query', 'Query'], ['mutation', 'Mutation'], ['subscription', 'Subscription']] as const) {
      if (byName.has(name)) roots.set(operation, name);
    }
  }
  const isRoot = (name: string) => [...roots.values()].includes(name);
  // Operations begin at the roots, so these come first.
  const types = [...byName.values()].sort((a, b) => Number(isRoot(b.name)) - Number(isRoot(a.name)) || (a.name < b.name ? -1 : 1));
  return { types, byName, roots: [...roots] };
}
