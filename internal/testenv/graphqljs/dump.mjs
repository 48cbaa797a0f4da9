// A document as one text: every node with where it starts and ends in UTF-16
// code units, and every value decoded. The Go parser's tests write the same.
const plain = new Set(['Name', 'NamedType', 'Variable', 'IntValue', 'FloatValue', 'BooleanValue', 'NullValue', 'EnumValue']);

const list = (nodes) => (nodes ?? []).map(dump).join(' ');

// Where a selection set begins, of the nodes that may be without one.
const opened = (n) => (n.selectionSet === undefined ? '' : `{@${n.selectionSet.loc.start}`);

const members = {
  StringValue: (n) => JSON.stringify(n.value),
  ListValue: (n) => list(n.values),
  ObjectValue: (n) => list(n.fields),
  ListType: (n) => dump(n.type),
  NonNullType: (n) => dump(n.type),
  Argument: (n) => [dump(n.name), dump(n.value)],
  ObjectField: (n) => [dump(n.name), dump(n.value)],
  Directive: (n) => [dump(n.name), list(n.arguments)],
  Field: (n) => [dump(n.alias), dump(n.name), list(n.arguments), list(n.directives), opened(n), dump(n.selectionSet)],
  FragmentSpread: (n) => [dump(n.name), list(n.directives)],
  InlineFragment: (n) => [dump(n.typeCondition), list(n.directives), opened(n), dump(n.selectionSet)],
  VariableDefinition: (n) => [dump(n.variable), dump(n.type), dump(n.defaultValue), list(n.directives)],
  OperationDefinition: (n) =>
    [n.operation, dump(n.name), list(n.variableDefinitions), list(n.directives), dump(n.selectionSet)],
  FragmentDefinition: (n) => [dump(n.name), dump(n.typeCondition), list(n.directives), dump(n.selectionSet)],
  OperationTypeDefinition: (n) => [n.operation, dump(n.type)],
  FieldDefinition: (n) => [dump(n.description), dump(n.name), list(n.arguments), dump(n.type), list(n.directives)],
  InputValueDefinition: (n) =>
    [dump(n.description), dump(n.name), dump(n.type), dump(n.defaultValue), list(n.directives)],
  EnumValueDefinition: (n) => [dump(n.description), dump(n.name), list(n.directives)],
};

// What definitions and extensions of a schema have, in this order.
const typeSystem = (n) => [
  dump(n.description), dump(n.name), list(n.interfaces), list(n.directives), list(n.fields ?? n.arguments),
  list(n.values), list(n.operationTypes), list(n.types ?? n.locations), n.repeatable ? 'repeatable' : '',
];

export function dump(node) {
  if (node === undefined) return '';
  if (node.kind === 'Document') return node.definitions.map(dump).join('\n');
  if (node.kind === 'SelectionSet') return `{${list(node.selections)}}`;
  const place = `${node.kind}@${node.loc.start}`;
  // The ends of the others are not kept by the parser that is compared.
  if (plain.has(node.kind) || /(Value|Type)$/.test(node.kind)) {
    const end = `-${node.loc.end}`;
    if (plain.has(node.kind)) return place + end;
    return `${place}${end}(${members[node.kind](node)})`;
  }
  const inner = (members[node.kind] ?? typeSystem)(node);
  return `${place}(${[inner].flat().filter((s) => s !== '').join(' ')})`;
}
