// A supergraph in a draft: its subgraphs, and what their composition says.
import type { components } from '../../../api.gen';

export type Composition = components['schemas']['Composition'];
export type ComposeProblem = components['schemas']['ComposeProblem'];
export type Member = components['schemas']['GraphQLMember'];

export const membersPath = 'graphql.supergraph.subgraphs';
export const memberPath = (index: number, name = '') => `${membersPath}[${index}]${name && `.${name}`}`;

/** The subgraphs of a definition, as far as they are objects. */
export function membersOf(value: unknown): Member[] {
  return (Array.isArray(value) ? value : []).map((one: unknown) => (typeof one === 'object' && one !== null && !Array.isArray(one) ? (one as Member) : {}));
}

/** What POST /api/graphql/compose is sent. */
export function composedBody(members: Member[]): string {
  return JSON.stringify({ subgraphs: members.map(({ name = '', api_id, sdl }) => ({ name, api_id: api_id || undefined, sdl: sdl || undefined })) });
}

export interface Mark {
  line?: number;
  message: string;
}

/** Problems as marks in the schemas of subgraphs, by name; each line of a problem is one. */
export function marksOf(problems: ComposeProblem[]): Map<string, Mark[]> {
  const marks = new Map<string, Mark[]>();
  for (const one of problems) {
    for (const place of one.places ?? []) {
      const mark = { line: place.line, message: `${one.code}: ${sentenceOf(one)}` };
      const there = marks.get(place.subgraph);
      if (there) there.push(mark);
      else marks.set(place.subgraph, [mark]);
    }
  }
  return marks;
}

/** The rule and what breaks it. */
export const sentenceOf = (one: ComposeProblem) => (one.detail ? `${one.message}: ${one.detail}` : one.message);

/** Type.field, as far as a problem names them. */
export const subjectOf = (one: ComposeProblem) => [one.type, one.field].filter(Boolean).join('.');

/** A name of which there is none: orders, orders-2. */
export function freeName(wanted: string, taken: (string | undefined)[]): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? wanted : `${wanted}-${n}`;
    if (!taken.includes(name)) return name;
  }
}

/** The definitions of a schema in SDL, each with its description. */
export function definitionsOf(sdl: string): string[] {
  const all: string[] = [];
  let current: string[] = [];
  let quoted = false;
  const end = () => {
    if (current.length > 0) all.push(current.join('\n'));
    current = [];
  };
  for (const line of sdl.split('\n')) {
    if ((line.match(/"""/g)?.length ?? 0) % 2 === 1) quoted = !quoted;
    if (line === '' && !quoted) end();
    else current.push(line);
  }
  end();
  return all;
}

/** The part of a schema whose definitions contain a text, in any case; all of it without one. */
export function searched(sdl: string, text: string): { sdl: string; found: number; of: number } {
  const all = definitionsOf(sdl);
  const found = all.filter((one) => one.toLowerCase().includes(text.toLowerCase()));
  return { sdl: text ? found.join('\n\n') : sdl, found: found.length, of: all.length };
}

/** Where a line begins in a text, from 1. */
export const offsetOfLine = (text: string, line: number) => text.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
