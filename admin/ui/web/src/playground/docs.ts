// The documentation of the schema: types and fields, with a way back and a search.
import { type GraphQLArgument, type GraphQLNamedType, type GraphQLSchema, type GraphQLType, getNamedType, isEnumType, isInputObjectType, isInterfaceType, isObjectType, isUnionType } from 'graphql';
import { fill, h } from './dom';

const mostFound = 100;

export class Docs {
  readonly element: HTMLElement;
  private schema: GraphQLSchema | undefined;
  private trail: string[] = [];
  private body = h('div', { class: 'docs-body' });
  private search: HTMLInputElement;

  constructor(private empty: () => string) {
    this.search = h('input', { type: 'search', placeholder: 'Search types and fields', 'aria-label': 'Search types and fields', oninput: () => this.draw() });
    this.element = h('section', { class: 'docs', 'aria-label': 'Documentation' }, h('div', { class: 'docs-head' }, this.search), this.body);
  }

  show(schema: GraphQLSchema | undefined) {
    this.schema = schema;
    this.trail = this.trail.filter((name) => schema?.getType(name));
    this.draw();
  }

  open(type: string) {
    this.search.value = '';
    this.trail.push(type);
    this.draw();
    this.body.querySelector<HTMLElement>('h2')?.focus();
  }

  draw() {
    const schema = this.schema;
    if (!schema) return fill(this.body, h('p', { class: 'muted' }, this.empty()));
    const wanted = this.search.value.trim().toLowerCase();
    if (wanted) return this.found(schema, wanted);
    const type = schema.getType(this.trail.at(-1) ?? '');
    return type ? this.type(schema, type) : this.roots(schema);
  }

  private roots(schema: GraphQLSchema) {
    const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
    const others = Object.values(schema.getTypeMap()).filter((one) => !one.name.startsWith('__') && !roots.includes(one as never));
    fill(
      this.body,
      h('h2', { tabindex: '-1' }, 'Schema'),
      schema.description ? h('p', {}, schema.description) : '',
      h('ul', {}, ...['query', 'mutation', 'subscription'].map((kind, i) => (roots[i] ? h('li', {}, `${kind}: `, this.link(roots[i].name)) : ''))),
      h('h3', {}, 'Types'),
      h('ul', {}, ...others.map((one) => h('li', {}, this.link(one.name)))),
    );
  }

  private type(schema: GraphQLSchema, type: GraphQLNamedType) {
    const parts: (Node | string)[] = [
      h('button', { type: 'button', class: 'plain', onclick: () => (this.trail.pop(), this.draw()) }, `← ${this.trail.at(-2) ?? 'Schema'}`),
      h('h2', { tabindex: '-1' }, type.name),
      type.description ? h('p', {}, type.description) : '',
    ];
    if (isObjectType(type) || isInterfaceType(type)) {
      const interfaces = type.getInterfaces();
      if (interfaces.length > 0) parts.push(h('p', {}, 'Implements ', ...interfaces.flatMap((one, i) => [i > 0 ? ', ' : '', this.link(one.name)])));
      parts.push(...Object.values(type.getFields()).map((one) => this.field(one)));
    }
    if (isInputObjectType(type)) parts.push(...Object.values(type.getFields()).map((one) => this.field({ ...one, args: [] })));
    if (isUnionType(type) || isInterfaceType(type)) parts.push(h('h3', {}, 'One of'), h('ul', {}, ...schema.getPossibleTypes(type).map((one) => h('li', {}, this.link(one.name)))));
    if (isEnumType(type))
      parts.push(h('ul', {}, ...type.getValues().map((one) => h('li', {}, h('code', {}, one.name), one.description ? ` ${one.description}` : '', deprecated(one.deprecationReason)))));
    fill(this.body, ...parts);
  }

  private field(field: { name: string; description?: string | null; deprecationReason?: string | null; args: readonly GraphQLArgument[]; type: unknown }): HTMLElement {
    const args = field.args.flatMap((one, i) => [i > 0 ? ', ' : '', `${one.name}: `, this.ref(one.type)]);
    return h(
      'div',
      { class: 'field' },
      h('code', {}, field.name, ...(args.length > 0 ? ['(', ...args, ')'] : []), ': ', this.ref(field.type)),
      deprecated(field.deprecationReason),
      field.description ? h('p', {}, field.description) : '',
    );
  }

  /** A type as it is written, its name a link. */
  private ref(type: unknown): Node {
    const named = getNamedType(type as GraphQLType);
    const [before, after] = String(type).split(named.name);
    return h('span', {}, before, this.link(named.name), after);
  }

  private link(type: string): HTMLElement {
    return h('button', { type: 'button', class: 'link', onclick: () => this.open(type) }, type);
  }

  private found(schema: GraphQLSchema, wanted: string) {
    const found: Node[] = [];
    for (const type of Object.values(schema.getTypeMap())) {
      if (type.name.startsWith('__') || found.length >= mostFound) continue;
      if (type.name.toLowerCase().includes(wanted)) found.push(h('li', {}, this.link(type.name)));
      if (!isObjectType(type) && !isInterfaceType(type) && !isInputObjectType(type)) continue;
      for (const field of Object.keys(type.getFields()))
        if (field.toLowerCase().includes(wanted) && found.length < mostFound) found.push(h('li', {}, this.link(type.name), `.${field}`));
    }
    fill(this.body, h('h2', { tabindex: '-1' }, 'Found'), found.length > 0 ? h('ul', {}, ...found) : h('p', { class: 'muted' }, 'Nothing has this name.'));
  }
}

function deprecated(reason: string | null | undefined): Node | string {
  return reason ? h('span', { class: 'muted' }, ` Deprecated: ${reason}`) : '';
}
