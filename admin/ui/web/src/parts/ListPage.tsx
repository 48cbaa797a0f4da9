import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ArrowDown, ArrowUp, ChevronLeft, ChevronRight } from 'lucide-react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { Pulsed } from '../api/query';
import { useShortcuts } from '../app/shortcuts';
import { cx } from '../lib';
import { t } from '../text/en';
import { Button } from './Button';
import { EmptyState } from './EmptyState';
import { ErrorPanel, StaleNote } from './ErrorPanel';
import { Link } from './Link';
import css from './ListPage.module.css';
import { Page } from './Page';
import { Skeleton } from './Skeleton';
import { ago } from './Time';
import { toast } from './toasts';
import { useURLState, type Search } from './urlState';

/** What the address asks for, as the server understands it. */
export interface ListQuery {
  q: string;
  page: number;
  /** As in the address; '' is the list's own order. */
  sort: string;
  filters: Record<string, string>;
}

export interface Rows<R> {
  rows: R[];
  /** Number of pages. */
  pages?: number;
  /** Number of rows on all pages, if the server says so. */
  total?: number;
  /** There are more than `total`. */
  capped?: boolean;
}

export interface Column<R> {
  id: string;
  label: string;
  cell: (row: R) => ReactNode;
  /** Name by which the server sorts; "-" before it is the other way round. */
  sort?: string;
  /** Numbers stand at the end. */
  end?: boolean;
  /** Left out below 768 px. */
  wide?: boolean;
}

export interface Filter {
  name: string;
  label: string;
  options: { value: string; label: string }[];
  /** In force where the address does not say; "any" is then written as such. */
  initial?: string;
}

export interface BulkAction<R> {
  label: string;
  danger?: boolean;
  /** Carried out for each selected row; what fails is reported and stays selected. */
  run: (row: R) => Promise<unknown>;
  /** Instead of run: opens a dialog of the page's own. */
  open?: (rows: R[]) => void;
}

export interface ListProps<R> {
  /** Begins the key of the query: ['apis']. The rest is what the address asks for. */
  queryKey: readonly unknown[];
  load: (query: ListQuery, signal: AbortSignal) => Promise<Rows<R>>;
  /** Numbers of the pulse after whose change the list is read again. */
  on?: Pulsed[];
  columns: Column<R>[];
  rowKey: (row: R) => string;
  /** What a row is called, for screen readers and for bulk results. */
  rowName: (row: R) => string;
  /** Where a row leads; the first column is the link. */
  rowTo?: (row: R) => string;
  /** The key e, for those who may edit: the field of the row's page that gets the focus, or what opens an editor. */
  edits?: string | false | ((row: R) => void);
  /** Instead of rowTo: the row opens beside the list, by what it changes in the address; j and k open it too. */
  rowOpens?: (row: R) => Search;
  /** With rowOpens: the key of the row that is open. */
  openKey?: string;
  /** Called with the rows in sight, whenever they change. */
  onRows?: (rows: R[]) => void;
  /** Label of the search field; without it there is none. */
  search?: string;
  filters?: Filter[];
  /** Bulk actions; with none rows cannot be selected. */
  bulk?: BulkAction<R>[];
  /** Shown when there is nothing and nothing was searched for. */
  empty: { title: string; text: ReactNode; action?: ReactNode; command?: string };
  /** Name of the list for screen readers. */
  label: string;
  /** What is counted below the list: ['API', 'APIs']. */
  things?: readonly [one: string, other: string];
}

/** A page that is a list. */
export function ListPage<R>({ title, note, actions, ...list }: ListProps<R> & { title: string; note?: ReactNode; actions?: ReactNode }) {
  return (
    <Page title={title} note={note} actions={actions}>
      <List {...list} />
    </Page>
  );
}

/** A list with search, filters, order and pages, all of them in the address. */
export function List<R>(p: ListProps<R>) {
  const [url, setURL] = useURLState();
  const filters = Object.fromEntries((p.filters ?? []).map((one) => [one.name, valueOf(one, url)]));
  const asked: ListQuery = { q: url.q ?? '', page: Math.max(1, Number(url.p) || 1), sort: url.sort ?? '', filters };
  const narrowed = asked.q !== '' || (p.filters ?? []).some((one) => filters[one.name] !== (one.initial ?? ''));
  const query = useQuery<Rows<R>>({
    queryKey: [...p.queryKey, asked],
    queryFn: ({ signal }) => p.load(asked, signal),
    placeholderData: keepPreviousData,
    meta: { on: p.on ?? [] },
  });
  const { data } = query;
  const { onRows } = p;
  useEffect(() => {
    if (data) onRows?.(data.rows);
  }, [data]);
  const selection = useSelection(p, data?.rows ?? []);
  const clear = () => setURL({ q: '', p: '', ...Object.fromEntries(Object.keys(filters).map((name) => [name, ''])) });

  let body: ReactNode;
  if (!data) {
    body = query.isError ? <ErrorPanel failure={query.error} what={p.label} retry={() => void query.refetch()} auto /> : <Skeleton lines={8} />;
  } else if (data.rows.length === 0 && narrowed) {
    body = <EmptyState title={t.list.noMatch} text="" action={<Button onClick={clear}>{t.list.clear}</Button>} />;
  } else if (data.rows.length === 0 && asked.page === 1) {
    body = <EmptyState {...p.empty} />;
  } else {
    body = <Table {...p} rows={data.rows} old={query.isPlaceholderData} selection={selection} sort={asked.sort} onSort={(sort) => setURL({ sort, p: '' })} />;
  }
  return (
    <>
      {(p.search !== undefined || (p.filters?.length ?? 0) > 0) && (
        <div className={css.bar} role="search">
          {p.search !== undefined && <SearchField label={p.search} value={asked.q} onChange={(q) => setURL({ q, p: '' })} />}
          {p.filters?.map((one) => (
            <div key={one.name}>
              <label htmlFor={`filter-${one.name}`}>{one.label}</label>
              <select id={`filter-${one.name}`} value={filters[one.name]} onChange={(event) => setURL({ [one.name]: addressOf(one, event.target.value), p: '' })}>
                <option value="">{t.list.any}</option>
                {one.options.map((option) => (
                  <option key={option.value} value={option.value}>
                    {option.label}
                  </option>
                ))}
              </select>
            </div>
          ))}
          {narrowed && <Button onClick={clear}>{t.list.clear}</Button>}
        </div>
      )}
      {data && query.isError && <StaleNote failure={query.error} age={ago(query.dataUpdatedAt)} retry={() => void query.refetch()} />}
      {body}
      <p className="sr-only" role="status">
        {data && !query.isPlaceholderData && t.list.results(data.rows.length)}
      </p>
      {data && <Foot rows={data} things={p.things ?? t.list.rows} page={asked.page} onPage={(page) => setURL({ p: page > 1 ? String(page) : '' }, { push: true })} />}
      {selection.rows.length > 0 && <Bulk actions={p.bulk ?? []} selection={selection} name={p.rowName} done={() => void query.refetch()} />}
    </>
  );
}

/** The value of a filter; '' is any. */
function valueOf(filter: Filter, url: Search): string {
  const said = url[filter.name];
  return said === 'any' ? '' : (said ?? filter.initial ?? '');
}

/** What the address says for a value of a filter. */
function addressOf(filter: Filter, value: string): string {
  return value === (filter.initial ?? '') ? '' : value || 'any';
}

/** The address changes 250 ms after the last letter. */
function SearchField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    if (value !== sent.current) setText(value); // the address changed by itself: back, or a link
    sent.current = value;
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return;
    const wait = setTimeout(() => {
      sent.current = text;
      onChange(text);
    }, 250);
    return () => clearTimeout(wait);
  }, [text]);
  return (
    <div className={css.search}>
      <label htmlFor="list-search">{label}</label>
      <input id="list-search" type="search" value={text} onChange={(event) => setText(event.target.value)} autoComplete="off" spellCheck={false} />
    </div>
  );
}

interface Selection<R> {
  rows: R[];
  has: (row: R) => boolean;
  toggle: (row: R) => void;
  set: (rows: R[]) => void;
}

function useSelection<R>(p: ListProps<R>, rows: R[]): Selection<R> {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const chosen = rows.filter((row) => keys.has(p.rowKey(row))); // what is no longer in sight is not selected
  return {
    rows: chosen,
    has: (row) => keys.has(p.rowKey(row)),
    toggle: (row) => {
      const next = new Set(keys);
      if (!next.delete(p.rowKey(row))) next.add(p.rowKey(row));
      setKeys(next);
    },
    set: (all) => setKeys(new Set(all.map(p.rowKey))),
  };
}

function Table<R>(p: ListProps<R> & { rows: R[]; old: boolean; selection: Selection<R>; sort: string; onSort: (sort: string) => void }) {
  const { rows, selection } = p;
  const [at, setAt] = useState(-1); // the row that j and k moved to
  const body = useRef<HTMLTableSectionElement>(null);
  const navigate = useNavigate();
  const [url, setURL] = useURLState();
  const open = p.openKey === undefined ? -1 : rows.findIndex((row) => p.rowKey(row) === p.openKey);
  const selectable = (p.bulk?.length ?? 0) > 0;
  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setAt(next);
    const row = body.current?.rows[next];
    (row?.querySelector<HTMLElement>('a') ?? row)?.focus();
    row?.scrollIntoView({ block: 'nearest' });
    if (p.rowOpens && rows[next]) setURL(p.rowOpens(rows[next]));
  };
  const current = rows[at];
  const edit = (row: R) => {
    if (typeof p.edits === 'function') p.edits(row);
    else if (p.rowTo) void navigate({ to: p.rowTo(row), search: { at: p.edits } as never });
  };
  useShortcuts([
    { keys: 'j', label: t.list.keys.down, run: () => move((open >= 0 ? open : at) + 1) },
    { keys: 'k', label: t.list.keys.up, run: () => move((open >= 0 ? open : at) - 1) },
    p.rowTo && { keys: 'Enter', label: t.list.keys.open, run: () => current && void navigate({ to: p.rowTo!(current) }) },
    !!p.edits && { keys: 'e', label: t.list.keys.edit, run: () => current && edit(current) },
    selectable && { keys: 'x', label: t.list.keys.select, run: () => current && selection.toggle(current) },
  ]);
  return (
    <div className={css.scroll}>
      <table className={css.table} aria-label={p.label} data-old={p.old || undefined} aria-busy={p.old || undefined}>
        <thead>
          <tr>
            {selectable && (
              <td className={css.tick}>
                <input type="checkbox" aria-label={t.list.selectAll} checked={rows.length > 0 && rows.every(selection.has)} onChange={(event) => selection.set(event.target.checked ? rows : [])} />
              </td>
            )}
            {p.columns.map((column) => (
              <Heading key={column.id} column={column} sort={p.sort} onSort={p.onSort} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, index) => (
            <tr key={p.rowKey(row)} data-current={index === at || undefined} aria-current={index === open || undefined} aria-selected={selectable ? selection.has(row) : undefined} onFocus={() => setAt(index)} tabIndex={p.rowTo ? undefined : -1}>
              {selectable && (
                <td className={css.tick}>
                  <input type="checkbox" aria-label={t.list.select(p.rowName(row))} checked={selection.has(row)} onChange={() => selection.toggle(row)} />
                </td>
              )}
              {p.columns.map((column, first) => (
                <td key={column.id} className={cx(column.end && css.end, column.wide && css.wide)}>
                  {first === 0 && p.rowTo ? (
                    <Link className={css.name} to={p.rowTo(row)}>
                      {column.cell(row)}
                    </Link>
                  ) : first === 0 && p.rowOpens ? (
                    <Link className={css.name} to="." search={{ ...url, ...p.rowOpens(row) }}>
                      {column.cell(row)}
                    </Link>
                  ) : (
                    column.cell(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Heading<R>({ column, sort, onSort }: { column: Column<R>; sort: string; onSort: (sort: string) => void }) {
  const name = column.sort;
  const up = name !== undefined && sort === name;
  const down = name !== undefined && sort === `-${name}`;
  if (!column.label) return <td className={cx(column.wide && css.wide)} />; // of buttons
  return (
    <th scope="col" className={cx(column.end && css.end, column.wide && css.wide)} aria-sort={up ? 'ascending' : down ? 'descending' : undefined}>
      {name ? (
        <button type="button" className={css.sort} onClick={() => onSort(up ? `-${name}` : name)}>
          {column.label}
          {up && <ArrowUp size={12} aria-label={t.list.sortedUp} />}
          {down && <ArrowDown size={12} aria-label={t.list.sortedDown} />}
        </button>
      ) : (
        column.label
      )}
    </th>
  );
}

function Foot<R>({ rows, things, page, onPage }: { rows: Rows<R>; things: readonly [string, string]; page: number; onPage: (page: number) => void }) {
  const pages = rows.pages ?? 1;
  if (pages <= 1 && rows.total === undefined) return null;
  return (
    <div className={css.foot}>
      <span className="muted">{rows.total !== undefined && t.list.total(rows.total, rows.capped ?? false, things)}</span>
      {(pages > 1 || page > 1) && (
        <nav className="row" aria-label={t.list.pages}>
          <Button dense aria-label={t.list.previous} disabled={page <= 1} onClick={() => onPage(page - 1)}>
            <ChevronLeft size={16} aria-hidden />
          </Button>
          <span>{t.list.page(page, Math.max(pages, page))}</span>
          <Button dense aria-label={t.list.next} disabled={page >= pages} onClick={() => onPage(page + 1)}>
            <ChevronRight size={16} aria-hidden />
          </Button>
        </nav>
      )}
    </div>
  );
}

function Bulk<R>({ actions, selection, name, done }: { actions: BulkAction<R>[]; selection: Selection<R>; name: (row: R) => string; done: () => void }) {
  const [busy, setBusy] = useState(false);
  const run = async (action: BulkAction<R>) => {
    if (action.open) {
      action.open(selection.rows);
      return;
    }
    setBusy(true);
    const failed: R[] = [];
    let good = 0;
    for (const row of selection.rows) {
      try {
        await action.run(row);
        good++;
      } catch (cause) {
        failed.push(row);
        toast({ kind: 'danger', text: t.list.bulkFailed(name(row), cause instanceof Error ? cause.message : String(cause)) });
      }
    }
    if (good > 0) toast({ kind: 'ok', text: `${action.label}: ${t.list.bulkDone(good)}` });
    selection.set(failed);
    setBusy(false);
    done();
  };
  return (
    <div className={css.bulk} data-bar role="group" aria-label={t.list.selected(selection.rows.length)}>
      <strong>{t.list.selected(selection.rows.length)}</strong>
      {actions.map((action) => (
        <Button key={action.label} dense kind={action.danger ? 'danger' : 'plain'} disabled={busy} onClick={() => void run(action)}>
          {action.label}
        </Button>
      ))}
      <Button dense kind="quiet" onClick={() => selection.set([])}>
        {t.list.unselect}
      </Button>
    </div>
  );
}
