// What an operation would count as under the limits of its caller: its depth and its
// cost, as the gateway counts them. Where a size is a variable, its value counts.
import {
  type FragmentDefinitionNode,
  getNamedType,
  getNullableType,
  type GraphQLCompositeType,
  type GraphQLSchema,
  isCompositeType,
  isListType,
  isObjectType,
  isInterfaceType,
  Kind,
  type FieldNode,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  type SelectionSetNode,
} from 'graphql';

export interface Limits {
  depthBase: number;
  /** 0: none, as for all limits. */
  maxDepth: number;
  maxCost: number;
  listSize: number;
  sizeArguments: string[];
  fieldDepths: { type_name: string; field_name: string; max_query_depth: number }[];
}

export const noLimits: Limits = { depthBase: 1, maxDepth: 0, maxCost: 0, listSize: 0, sizeArguments: [], fieldDepths: [] };

export interface Measure {
  depth: number;
  /** The limit that the depth is closest to, 0 without one. */
  maxDepth: number;
  cost: number;
  maxCost: number;
}

const usualSizes = ['first', 'last', 'limit'];
const usualListSize = 10;
const mostNested = 200;

/** The names of the operations of a text; empty while it cannot be parsed. */
export function operationsOf(text: string): string[] {
  try {
    return parse(text).definitions.flatMap((one) => (one.kind === Kind.OPERATION_DEFINITION ? [one.name?.value ?? ''] : []));
  } catch {
    return [];
  }
}

/** Whether the operation of a name, or the first, is a subscription; false while the text cannot be parsed. */
export function isSubscription(text: string, name: string): boolean {
  try {
    const operations = parse(text).definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION);
    const chosen = operations.find((one) => (one.name?.value ?? '') === name) ?? operations[0];
    return chosen?.operation === OperationTypeNode.SUBSCRIPTION;
  } catch {
    return false;
  }
}

/** Measures one operation of a text; undefined if it cannot be parsed or has none of the name. */
export function measure(text: string, name: string, variables: unknown, schema: GraphQLSchema | undefined, limits: Limits): Measure | undefined {
  let document;
  try {
    document = parse(text);
  } catch {
    return undefined;
  }
  const operations = document.definitions.filter((one): one is OperationDefinitionNode => one.kind === Kind.OPERATION_DEFINITION);
  const operation = operations.find((one) => (one.name?.value ?? '') === name) ?? operations[0];
  if (!operation) return undefined;
  const fragments = new Map(document.definitions.flatMap((one) => (one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one] as const] : [])));
  const m = new Measuring(fragments, given(operation, variables), limits, schema);
  const root = schema?.getRootType(operation.operation) ?? undefined;
  const levels = m.levels(operation.selectionSet, 0);
  const cost = m.cost(operation.selectionSet, root, 0);
  return { ...m.worst(operation.selectionSet, levels, root), cost, maxCost: limits.maxCost };
}

/** The values of variables, with their defaults. */
function given(operation: OperationDefinitionNode, variables: unknown): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const one of operation.variableDefinitions ?? []) {
    if (one.defaultValue?.kind === Kind.INT) values[one.variable.name.value] = Number(one.defaultValue.value);
  }
  return typeof variables === 'object' && variables ? { ...values, ...variables } : values;
}

class Measuring {
  constructor(
    private fragments: Map<string, FragmentDefinitionNode>,
    private values: Record<string, unknown>,
    private limits: Limits,
    private schema: GraphQLSchema | undefined,
  ) {}

  /** The type that a fragment narrows to. */
  private narrowed(condition: string | undefined, on: GraphQLCompositeType | undefined) {
    const type = condition ? this.schema?.getType(condition) : on;
    return isCompositeType(type) ? type : on;
  }

  /** Goes through the fields of a selection set, those of its fragments too. */
  private each(set: SelectionSetNode, on: GraphQLCompositeType | undefined, nested: number, act: (field: FieldNode, on: GraphQLCompositeType | undefined) => void) {
    if (nested > mostNested) return; // a fragment within itself
    for (const one of set.selections) {
      if (one.kind === Kind.FIELD) {
        if (one.name.value !== '__typename') act(one, on);
      } else if (one.kind === Kind.INLINE_FRAGMENT) {
        this.each(one.selectionSet, this.narrowed(one.typeCondition?.name.value, on), nested + 1, act);
      } else {
        const fragment = this.fragments.get(one.name.value);
        if (fragment) this.each(fragment.selectionSet, this.narrowed(fragment.typeCondition.name.value, on), nested + 1, act);
      }
    }
  }

  /** How many fields are nested at most. */
  levels(set: SelectionSetNode, nested: number): number {
    let most = 0;
    this.each(set, undefined, nested, (field) => {
      most = Math.max(most, 1 + (field.selectionSet ? this.levels(field.selectionSet, nested + 1) : 0));
    });
    return most;
  }

  /** The depth that is closest to its limit: that of the operation, or of a root field with one of its own. */
  worst(set: SelectionSetNode, levels: number, root: GraphQLCompositeType | undefined): { depth: number; maxDepth: number } {
    const base = this.limits.depthBase;
    let rest = 0;
    const own: { depth: number; maxDepth: number }[] = [];
    this.each(set, root, 0, (field, on) => {
      const below = field.selectionSet ? this.levels(field.selectionSet, 1) : 0;
      const limit = this.limits.fieldDepths.find((one) => one.field_name === field.name.value && (one.type_name === on?.name || one.type_name === 'Query'));
      if (!limit || limit.max_query_depth === 0) rest = Math.max(rest, below + 1);
      else if (limit.max_query_depth > 0) own.push({ depth: base + below, maxDepth: limit.max_query_depth });
    });
    const all = [...own, { depth: base + (own.length > 0 ? rest : levels), maxDepth: this.limits.maxDepth }];
    const share = (one: { depth: number; maxDepth: number }) => (one.maxDepth > 0 ? one.depth / one.maxDepth : 0);
    return all.reduce((a, b) => (share(a) > share(b) ? a : b));
  }

  cost(set: SelectionSetNode, on: GraphQLCompositeType | undefined, nested: number): number {
    let total = 0;
    this.each(set, on, nested, (field, owner) => {
      const type = owner && (isObjectType(owner) || isInterfaceType(owner)) ? owner.getFields()[field.name.value]?.type : undefined;
      const named = type ? getNamedType(type) : undefined;
      total += 1;
      if (!field.selectionSet || field.name.value.startsWith('__')) return;
      const inner = this.cost(field.selectionSet, isCompositeType(named) ? named : undefined, nested + 1);
      const list = type ? isListType(getNullableType(type)) : false;
      total += list ? inner * this.size(field) : inner;
    });
    return total;
  }

  private size(field: FieldNode): number {
    const names = this.limits.sizeArguments.length > 0 ? this.limits.sizeArguments : usualSizes;
    let size = 0;
    for (const one of field.arguments ?? []) {
      if (!names.includes(one.name.value)) continue;
      const value = one.value.kind === Kind.INT ? Number(one.value.value) : one.value.kind === Kind.VARIABLE ? Number(this.values[one.value.name.value]) : NaN;
      if (value > 0) size = Math.max(size, value);
    }
    return size || this.limits.listSize || usualListSize;
  }
}
