import { findNodeAtLocation, type JSONPath } from 'jsonc-parser';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Failure, type Problem } from '../../api/failure';
import { isReloading, kept, same } from '../../lib';
import { t } from '../../text/en';
import { changes, parse, pathOf, pathText, setAt, valueOf, type Change, type Path } from './merge';

/** What is edited: the text as the server sent it, with its version. */
export interface Base {
  text: string;
  /** For If-Match; '' for something new. */
  etag: string;
  /** Revision of the configuration that it was read at. */
  revision?: number;
}

export interface Draft {
  base: Base;
  text: string;
  /** The value of the last text that parsed. */
  value: Record<string, unknown>;
  /** The value at a path: a list of names, or "proxy.target_url". */
  get: <T = unknown>(path: Path | string) => T | undefined;
  /** Sets a member; undefined removes it. The rest of the text stays as it is. */
  set: (path: Path | string, value: unknown) => void;
  setText: (text: string) => void;
  /** What is wrong: where the text does not parse, or what the server says. */
  problems: Problem[];
  /** The text does not parse; `value` is of an earlier text. */
  broken: boolean;
  /** The server is being asked. */
  checking: boolean;
  /** Values differ from what the server has. */
  changed: boolean;
  changes: Change[];
  /** When the draft was written that was found in this tab; undefined: none was found. */
  restored?: number;
  /** Goes back to what the server has. */
  discard: () => void;
  /** Keeps a restored draft and stops to offer it. */
  accept: () => void;
  /** Another base: after a publish, or for a merge. */
  rebase: (base: Base, text?: string) => void;
}

interface Stored {
  text: string;
  base: Base;
  at: number;
}

/** Drafts of this page load, with their secrets: a page that moves to another tab of its object is drawn anew. */
const live = new Map<string, Stored>();

const secretName = /secret|password|private|token|credential|api_?key|authorization/i;

/** The text without changed secrets: they are not kept in the tab's storage. */
function withoutSecrets(draft: Change[], text: string): string {
  return draft.reduce((now, change) => (change.path.some((part) => typeof part === 'string' && secretName.test(part)) && typeof change.after === 'string' ? setAt(now, change.path, change.before) : now), text);
}

/**
 * A draft of one object. It lives in the tab's storage until it is published or discarded,
 * and is checked by `validate` 400 ms after the last change.
 */
export function useDraft(p: {
  /** Names the object: "policy:gold". */
  id: string;
  base: Base;
  /** Asks the server what is wrong, by POST …/validate. A failure with problems counts as these. */
  validate?: (text: string, signal: AbortSignal) => Promise<Problem[] | void>;
}): Draft {
  const name = `draft:${p.id}`;
  const [stored] = useState(() => live.get(name) ?? readStored(name, p.base));
  const [base, setBase] = useState<Base>(stored?.base ?? p.base);
  const [text, setText] = useState(stored?.text ?? p.base.text);
  const [restored, setRestored] = useState(live.has(name) ? undefined : stored?.at);
  const [found, setFound] = useState<Problem[]>([]);
  const [checking, setChecking] = useState(false);

  const parsed = useMemo(() => parse(text), [text]);
  const good = useRef(text);
  if (parsed.tree?.type === 'object') good.current = text;
  const goodText = good.current;
  const value = useMemo(() => (valueOf(parse(goodText).tree, goodText) ?? {}) as Record<string, unknown>, [goodText]);
  const baseValue = useMemo(() => valueOf(parse(base.text).tree, base.text), [base.text]);
  const differences = useMemo(() => changes(baseValue ?? {}, value), [baseValue, value]);
  const broken = goodText !== text;
  const changed = differences.length > 0 || broken;

  // The page loaded a newer version, and there is nothing to lose.
  useEffect(() => {
    if (p.base.text !== base.text && !changed) {
      setBase(p.base);
      setText(p.base.text);
    }
  }, [p.base.text, p.base.etag]);

  useEffect(() => {
    if (changed && !broken) live.set(name, { text, base, at: Date.now() });
    else live.delete(name);
    if (!changed) kept.set('session', name, null);
    else kept.set('session', name, JSON.stringify({ text: broken ? goodText : withoutSecrets(differences, text), base, at: Date.now() } satisfies Stored));
  }, [name, text, base, changed, broken, goodText, differences]);

  const validate = useRef(p.validate);
  validate.current = p.validate;
  useEffect(() => {
    if (!validate.current || broken) return;
    const stop = new AbortController();
    const wait = setTimeout(() => {
      setChecking(true);
      validate.current!(text, stop.signal)
        .then((problems) => setFound(problems ?? []))
        .catch((cause: unknown) => {
          if (stop.signal.aborted) return;
          if (cause instanceof Failure && cause.status === 400) setFound(cause.problems.length > 0 ? cause.problems : [{ path: '', message: cause.message }]);
        })
        .finally(() => !stop.signal.aborted && setChecking(false));
    }, 400);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [text, broken]);

  // Leaving the tab asks only when values differ.
  useEffect(() => {
    if (!changed) return;
    const ask = (event: BeforeUnloadEvent) => isReloading() || event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [changed]);

  const set = useCallback((path: Path | string, next: unknown) => {
    setText((now) => {
      const from = parse(now).tree ? now : good.current; // a form edits the last text that parsed
      const where = typeof path === 'string' ? pathOf(path) : path;
      const node = findNodeAtLocation(parse(from).tree!, where as JSONPath);
      return same(valueOf(node, from), next) ? now : setAt(from, where, next);
    });
  }, []);
  const get = useCallback(
    <T,>(path: Path | string) => (typeof path === 'string' ? pathOf(path) : path).reduce<unknown>((now, part) => (now as Record<string, unknown> | null | undefined)?.[part as string], value) as T | undefined,
    [value],
  );
  const rebase = useCallback((next: Base, nextText = next.text) => {
    setBase(next);
    setText(nextText);
    setRestored(undefined);
    setFound([]);
  }, []);
  const discard = useCallback(() => rebase(p.base), [rebase, p.base]);
  const accept = useCallback(() => setRestored(undefined), []);

  const problems = parsed.problem
    ? [{ path: '', message: t.draft.syntax(parsed.problem.line, parsed.problem.column, parsed.problem.message), line: parsed.problem.line, column: parsed.problem.column }]
    : found;
  return { base, text, value, get, set, setText, problems, broken, checking, changed, changes: differences, restored, discard, accept, rebase };
}

function readStored(name: string, base: Base): Stored | undefined {
  const text = kept.get('session', name);
  if (!text) return undefined;
  try {
    const stored = JSON.parse(text) as Stored;
    const differs = !same(valueOf(parse(stored.text).tree, stored.text), valueOf(parse(base.text).tree, base.text));
    return differs ? stored : undefined;
  } catch {
    return undefined;
  }
}

export { pathOf, pathText };
