// What differs between two JSON texts, and merging two changes of one text. Texts are
// edited member by member, so that order, layout, unknown members and large numbers stay.
import { applyEdits, findNodeAtLocation, format, getNodeValue, modify, parseTree, printParseErrorCode, type JSONPath, type Node, type ParseError } from 'jsonc-parser';
import { same } from '../../lib';

export type Path = (string | number)[];

export interface Change {
  path: Path;
  before: unknown; // undefined: it was not there
  after: unknown; // undefined: it is gone
}

/** "proxy.target_url", "tags[2]": as the server writes paths. */
export function pathText(path: Path): string {
  return path.map((part, at) => (typeof part === 'number' ? `[${part}]` : at === 0 ? part : `.${part}`)).join('');
}

/** The path of a text such as `proxy.tags[2]` or `access_rights["orders"].limit`. */
export function pathOf(text: string): Path {
  return [...text.matchAll(/\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)|\[(\d+)\]/g)].map(([, quoted, name, index]) => (quoted ? (JSON.parse(quoted) as string) : (name ?? Number(index))));
}

const strict = { allowTrailingComma: false, disallowComments: true };

export interface SyntaxProblem {
  message: string;
  offset: number;
  line: number;
  column: number;
}

/** Reads a text; the problem is the first one. */
export function parse(text: string): { tree?: Node; problem?: SyntaxProblem } {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, strict);
  const first = errors[0];
  if (!first && tree) return { tree };
  const offset = first?.offset ?? 0;
  const before = text.slice(0, offset).split('\n');
  const words = first ? printParseErrorCode(first.error).replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase() : 'a JSON object is expected';
  return { problem: { message: words, offset, line: before.length, column: before.at(-1)!.length + 1 } };
}

/** Where the member at a path stands in a text, or the nearest one around it. */
export function offsetOf(text: string, path: string): number {
  const { tree } = parse(text);
  for (let at = pathOf(path); tree && at.length > 0; at = at.slice(0, -1)) {
    const node = findNodeAtLocation(tree, at as JSONPath);
    if (node) return node.parent?.type === 'property' ? node.parent.offset : node.offset;
  }
  return 0;
}

/** The value of a tree. Numbers that a double cannot hold are kept as their text, so that they compare. */
export function valueOf(node: Node | undefined, text: string): unknown {
  if (!node) return undefined;
  if (node.type === 'object') return Object.fromEntries((node.children ?? []).map((p) => [p.children![0]!.value as string, valueOf(p.children![1], text)]));
  if (node.type === 'array') return (node.children ?? []).map((child) => valueOf(child, text));
  if (node.type === 'number' && !Number.isSafeInteger(node.value) && String(node.value) !== text.slice(node.offset, node.offset + node.length)) {
    return `number ${text.slice(node.offset, node.offset + node.length)}`;
  }
  return getNodeValue(node);
}

/** The text of the value at a path, without the margin that it has there; undefined: there is none. */
export function textAt(text: string, path: Path): string | undefined {
  const { tree } = parse(text);
  const node = tree && findNodeAtLocation(tree, path as JSONPath);
  if (!node) return undefined;
  const margin = /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', node.offset) + 1))![0];
  return text.slice(node.offset, node.offset + node.length).replaceAll(`\n${margin}`, '\n');
}

/** How the text is indented, so that what is added fits in. */
function layout(text: string): { insertSpaces: boolean; tabSize: number; eol: string; keepLines: boolean } {
  const found = /\n([ \t]+)\S/.exec(text)?.[1];
  return { insertSpaces: !found?.startsWith('\t'), tabSize: found && !found.startsWith('\t') ? found.length : 2, eol: '\n', keepLines: true };
}

/** A text on one line with line breaks and two spaces; others stay as they are. */
export function pretty(text: string): string {
  if (text.trim().includes('\n')) return text;
  return applyEdits(text, format(text, undefined, { insertSpaces: true, tabSize: 2, eol: '\n' }));
}

/** The text with the value at a path set; undefined removes the member. */
export function setAt(text: string, path: Path, value: unknown): string {
  if (value !== null && typeof value === 'object' && JSON.stringify(value).length > 4096) return setLarge(text, path, value);
  const oneLine = !text.includes('\n') && text.length > 2;
  return applyEdits(text, modify(text, path as JSONPath, value, { formattingOptions: oneLine ? undefined : layout(text) }));
}

/** setAt for a large value, which modify would lay out in time that grows with the square of its length. */
function setLarge(text: string, path: Path, value: object): string {
  const small = setAt(text, path, 0);
  const node = findNodeAtLocation(parse(small).tree!, path as JSONPath)!;
  const { insertSpaces, tabSize } = layout(text);
  const margin = /[ \t]*/.exec(small.slice(small.lastIndexOf('\n', node.offset) + 1))![0];
  const written = text.includes('\n') ? JSON.stringify(value, null, insertSpaces ? tabSize : '\t').replaceAll('\n', `\n${margin}`) : JSON.stringify(value);
  return small.slice(0, node.offset) + written + small.slice(node.offset + node.length);
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** What differs, at the deepest members of objects; lists are compared whole. */
export function changes(before: unknown, after: unknown, path: Path = []): Change[] {
  if (same(before, after)) return [];
  if (!isObject(before) || !isObject(after)) return [{ path, before, after }];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => changes(before[name], after[name], [...path, name]));
}

const overlaps = (a: Path, b: Path) => a.every((part, at) => at >= b.length || part === b[at]) || b.every((part, at) => at >= a.length || part === a[at]);

export interface Conflict {
  path: Path;
  base: unknown;
  mine: unknown;
  theirs: unknown;
}

export interface Merged {
  /** Theirs with my changes that nobody else touched. */
  text: string;
  /** Their changes, which are in the text. */
  taken: Change[];
  /** What both changed, differently; the text has theirs. */
  conflicts: Conflict[];
}

const at = (value: unknown, path: Path) => path.reduce<unknown>((now, part) => (now as Record<string, unknown> | undefined)?.[part as string], value);

/** Merges my change of the base with theirs. All three texts parse. */
export function merge(base: string, mine: string, theirs: string): Merged {
  const values = [base, mine, theirs].map((text) => valueOf(parse(text).tree, text)) as [unknown, unknown, unknown];
  const [b, m, t] = values;
  const theirChanges = changes(b, t);
  const merged: Merged = { text: theirs, taken: [], conflicts: [] };
  for (const change of changes(b, m)) {
    const against = theirChanges.filter((other) => overlaps(other.path, change.path));
    if (against.length > 0 && !same(at(t, change.path), change.after)) {
      const shortest = [change.path, ...against.map((other) => other.path)].reduce((x, y) => (y.length < x.length ? y : x));
      if (!merged.conflicts.some((one) => same(one.path, shortest))) {
        merged.conflicts.push({ path: shortest, base: at(b, shortest), mine: at(m, shortest), theirs: at(t, shortest) });
      }
      continue;
    }
    merged.text = copyAt(merged.text, mine, change.path);
  }
  merged.taken = theirChanges.filter((change) => !merged.conflicts.some((one) => overlaps(one.path, change.path)));
  return merged;
}

/** The text with the member at a path as another text has it, with its numbers to the letter. */
export function copyAt(text: string, from: string, path: Path): string {
  const tree = parse(from).tree;
  const node = tree && findNodeAtLocation(tree, path as JSONPath);
  if (!node) return setAt(text, path, undefined);
  const value = getNodeValue(node) as unknown;
  const written = setAt(text, path, value);
  const put = findNodeAtLocation(parse(written).tree!, path as JSONPath);
  // modify writes values anew, and doubles lose digits: the original text goes in their place.
  const original = from.slice(node.offset, node.offset + node.length);
  return put && /\d{16}/.test(original) ? written.slice(0, put.offset) + original + written.slice(put.offset + put.length) : written;
}
