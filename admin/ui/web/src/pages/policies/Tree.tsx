// The tree of types and fields. Only the rows in sight are drawn; the focus is on the tree
// or on the filter, and the current row is its active descendant.
import { Ban, Check, ChevronRight, Minus } from 'lucide-react';
import { useEffect, useId, useLayoutEffect, useRef, useState, type KeyboardEvent, type RefObject } from 'react';
import { useShortcuts } from '../../app/shortcuts';
import { cx } from '../../lib';
import { TextField } from '../../parts/fields';
import css from './policies.module.css';
import { text as t } from './text';
import { rowName, type Row, type States } from './tree';

const height = matchMedia('(pointer: coarse)').matches ? 44 : 28; // of a row, in pixels
const beyond = 8; // rows that are drawn above and below those in sight

interface Props {
  rows: Row[];
  states: States;
  filter: string;
  onFilter: (filter: string) => void;
  /** Name of the current row. */
  current: string;
  onCurrent: (name: string) => void;
  onOpen: (type: string, open: boolean) => void;
  /** Undefined: the rules cannot be changed. */
  onToggle?: (row: Row) => void;
  /** Where the depth of the current field is set. */
  onDepth: () => void;
}

export function Tree(p: Props) {
  const id = useId();
  const tree = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLDivElement>(null);
  const [filtering, setFiltering] = useState(false);
  const at = Math.max(0, p.rows.findIndex((row) => rowName(row) === p.current));
  const row = p.rows[at];
  const window = useWindow(tree, p.rows.length, at);
  const active = row ? `${id}-${rowName(row)}` : undefined;
  useShortcuts([{ keys: '/', label: t.fields.toFilter, run: () => search.current?.querySelector('input')?.focus() }]);

  useEffect(() => {
    const input = search.current?.querySelector('input');
    input?.setAttribute('aria-controls', id);
    if (active && filtering) input?.setAttribute('aria-activedescendant', active);
    else input?.removeAttribute('aria-activedescendant');
  }, [active, filtering, id]);

  const go = (to: number) => {
    const next = p.rows[Math.max(0, Math.min(p.rows.length - 1, to))];
    if (next) p.onCurrent(rowName(next));
  };
  const onKeyDown = (event: KeyboardEvent, typing: boolean) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !row) return;
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + 10),
      PageUp: () => go(at - 10),
      ' ': () => p.onToggle?.(row),
    };
    const inTree: Record<string, () => void> = {
      Home: () => go(0),
      End: () => go(p.rows.length - 1),
      ArrowRight: () => (row.field ? undefined : row.open ? go(at + 1) : p.onOpen(row.type.name, true)),
      ArrowLeft: () => (row.field ? p.onCurrent(row.type.name) : p.onOpen(row.type.name, false)),
      Enter: () => (row.field ? p.onDepth() : p.onOpen(row.type.name, !row.open)),
      d: () => row.field && p.onDepth(),
    };
    const inFilter: Record<string, () => void> = {
      Enter: () => tree.current?.focus(),
      Escape: () => (p.filter ? p.onFilter('') : tree.current?.focus()),
    };
    const run = moves[event.key] ?? (typing ? inFilter : inTree)[event.key];
    if (!run) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  };
  return (
    <div className={cx(css.stack, filtering && css.filtering)}>
      <div ref={search} onKeyDown={(event) => onKeyDown(event, true)} onFocus={() => setFiltering(true)} onBlur={() => setFiltering(false)}>
        <TextField label={t.fields.filter} help={t.fields.filterHelp} type="search" code autoComplete="off" spellCheck={false} value={p.filter} onChange={p.onFilter} />
      </div>
      <div
        ref={tree}
        id={id}
        className={css.tree}
        role="tree"
        aria-label={t.fields.tree}
        tabIndex={0}
        aria-activedescendant={active}
        data-path="fields"
        onKeyDown={(event) => onKeyDown(event, false)}
        onScroll={window.onScroll}
      >
        <div role="none" style={{ blockSize: Math.max(p.rows.length, 1) * height }}>
          {p.rows.length === 0 && <p className="muted">{t.fields.empty}</p>}
          {p.rows.slice(window.from, window.to).map((one, n) => (
            <TreeRow key={rowName(one)} id={`${id}-${rowName(one)}`} row={one} top={(window.from + n) * height} current={one === row} states={p.states} onCurrent={p.onCurrent} onOpen={p.onOpen} onToggle={p.onToggle} />
          ))}
        </div>
      </div>
    </div>
  );
}

/** The rows to draw; the current one comes into sight when it changes. */
function useWindow(box: RefObject<HTMLDivElement | null>, count: number, at: number) {
  const [top, setTop] = useState(0);
  const [size, setSize] = useState(600);
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    setSize(node.clientHeight);
    if (at * height < node.scrollTop) node.scrollTop = at * height;
    else if ((at + 1) * height > node.scrollTop + node.clientHeight) node.scrollTop = (at + 1) * height - node.clientHeight;
    setTop(node.scrollTop);
  }, [box, at, count]);
  return {
    from: Math.max(0, Math.floor(top / height) - beyond),
    to: Math.min(count, Math.ceil((top + size) / height) + beyond),
    onScroll: () => box.current && (setTop(box.current.scrollTop), setSize(box.current.clientHeight)),
  };
}

type RowProps = Pick<Props, 'states' | 'onCurrent' | 'onOpen' | 'onToggle'> & { id: string; row: Row; top: number; current: boolean };

function TreeRow({ id, row, top, current, states, ...p }: RowProps) {
  const { type, field } = row;
  const all = field ? [field] : type.fields;
  const allowed = all.filter((one) => states.allowed(type.name, one.name)).length;
  const checked = allowed === all.length ? true : allowed === 0 ? false : 'mixed';
  const depth = field && states.depth(type.name, field.name);
  const word = checked === true ? t.fields.allowed : checked === false ? t.fields.restricted : t.fields.some(allowed, all.length);
  const Icon = checked === true ? Check : checked === false ? Ban : Minus;
  return (
    <div
      id={id}
      role="treeitem"
      className={cx(css.treeRow, current && css.active)}
      style={{ insetBlockStart: top, blockSize: height }}
      aria-level={field ? 2 : 1}
      aria-posinset={row.at}
      aria-setsize={row.of}
      aria-expanded={field ? undefined : row.open}
      aria-selected={current}
      aria-checked={checked}
      onClick={() => {
        p.onCurrent(rowName(row));
        if (!field) p.onOpen(type.name, !row.open);
      }}
    >
      {!field && (
        <span className={cx(css.twist, row.open && css.open)}>
          <ChevronRight size={14} aria-hidden />
        </span>
      )}
      <span className={css.label}>
        {field?.name ?? type.name}
        {field && <span>: {field.of}</span>}
      </span>
      {depth !== undefined && <span className={css.depth}>{t.fields.depth(depth)}</span>}
      {field && states.implied(type.name, field.name) && <span className={css.depth}>{t.fields.through}</span>}
      <span
        className={cx(css.state, checked === true && css.allowed, checked === false && css.restricted)}
        onClick={(event) => {
          event.stopPropagation();
          p.onCurrent(rowName(row));
          p.onToggle?.(row);
        }}
      >
        <Icon size={14} aria-hidden /> {word}
      </span>
    </div>
  );
}
