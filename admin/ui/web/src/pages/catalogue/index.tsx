import { ArrowDown, ArrowUp } from 'lucide-react';
import { useState } from 'react';
import { queryClient, request, respond } from '../../api';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { ListPage, type BulkAction, type Column } from '../../parts/ListPage';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { one, portal, usePolicyNames, type Done, type Entry, type List } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { EntryPage, NewEntry } from './Entry';
import { text } from './text';

export const pages = { '/catalogue': Catalogue, '/catalogue/new': NewEntry, '/catalogue/$id': EntryPage };

type Row = Entry & { id: string; why: string[] };

async function load(query: Record<string, string | number | undefined>, signal: AbortSignal) {
  const list = await request<List<Entry & { id: string }> & { Hidden: Record<string, string[]> | null }>('GET', `${portal}/catalogue/entries`, { query: { page_size: 50, ...query }, signal });
  return { rows: list.Data.map((entry) => ({ ...entry, why: list.Hidden?.[entry.id] ?? [] })), pages: list.Pages };
}

/** Changes one member of an entry and leaves the rest as it is. */
async function change(id: string, what: Partial<Entry>): Promise<void> {
  const answer = await respond('GET', one('catalogue/entries', id));
  const entry = (await answer.json()) as Entry;
  await request<Done>('PUT', one('catalogue/entries', id), { body: { ...entry, ...what }, headers: { 'If-Match': answer.headers.get('ETag') ?? '' } });
}

/** Moves an entry by one place; the order is that of the whole catalogue. */
async function move(id: string, by: 1 | -1): Promise<{ place: number; all: number }> {
  const answer = await respond('GET', `${portal}/catalogue`);
  const whole = (await answer.json()) as { id: string; org_id: string; apis: Entry[] };
  const from = whole.apis.findIndex((entry) => entry.id === id);
  const to = Math.max(0, Math.min(whole.apis.length - 1, from + by));
  const apis = whole.apis.toSpliced(from, 1).toSpliced(to, 0, whole.apis[from]!);
  if (from !== to) await request<Done>('PUT', `${portal}/catalogue`, { body: { ...whole, apis }, headers: { 'If-Match': answer.headers.get('ETag') ?? '' } });
  return { place: to + 1, all: apis.length };
}

function Catalogue() {
  const [url] = useURLState();
  const [rows, setRows] = useState<Row[]>([]);
  const [busy, setBusy] = useState(false);
  const may = useCan('editor');
  const nameOf = usePolicyNames(rows.map((row) => row.policy_id));
  const again = () => queryClient.invalidateQueries({ queryKey: ['catalogue'] });
  const shift = async (row: Row, by: 1 | -1) => {
    setBusy(true);
    try {
      const { place, all } = await move(row.id, by);
      await again();
      toast({ name: 'moved', text: text.moved(row.name, place, all) });
    } catch (cause) {
      toast({ kind: 'danger', text: (cause as Error).message });
    } finally {
      setBusy(false);
    }
  };
  const ordered = may && !url.q && !url.show;
  const columns: Column<Row>[] = [
    { id: 'name', label: text.columns.name, cell: (row) => row.name },
    { id: 'state', label: text.columns.state, cell: (row) => <State row={row} /> },
    { id: 'api', label: text.columns.api, cell: (row) => row.api_id, wide: true },
    { id: 'policy', label: text.columns.policy, cell: (row) => nameOf(row.policy_id), wide: true },
    ...(ordered
      ? [
          {
            id: 'order',
            label: text.columns.order,
            end: true,
            cell: (row: Row) => (
              <span className={portalCSS.verbs}>
                <Button dense kind="quiet" disabled={busy} aria-label={text.up(row.name)} onClick={() => void shift(row, -1)}>
                  <ArrowUp size={14} aria-hidden />
                </Button>
                <Button dense kind="quiet" disabled={busy} aria-label={text.down(row.name)} onClick={() => void shift(row, 1)}>
                  <ArrowDown size={14} aria-hidden />
                </Button>
              </span>
            ),
          },
        ]
      : []),
  ];
  const bulk: BulkAction<Row>[] = may
    ? [
        { label: text.show, run: (row) => change(row.id, { show: true }) },
        { label: text.hide, run: (row) => change(row.id, { show: false }) },
      ]
    : [];
  const create = may && (
    <LinkButton kind="primary" to="/catalogue/new">
      {text.create}
    </LinkButton>
  );
  return (
    <ListPage<Row>
      title={text.title}
      note={text.note}
      label={text.label}
      things={text.things}
      actions={create}
      queryKey={['catalogue', 'list']}
      on={['revision']}
      load={(query, signal) => load({ q: query.q, p: query.page, show: query.filters.show }, signal)}
      columns={columns}
      rowKey={(row) => row.id}
      rowName={(row) => row.name}
      rowTo={(row) => `/catalogue/${encodeURIComponent(row.id)}`}
      edits={may && 'name'}
      onRows={setRows}
      search={text.search}
      filters={[{ name: 'show', label: text.filters.show, options: Object.entries(text.filters.shows).map(([value, label]) => ({ value, label })) }]}
      bulk={bulk}
      empty={{ ...text.empty, action: create }}
    />
  );
}

function State({ row }: { row: Row }) {
  const why = row.why.filter((one) => one !== 'show is false');
  return (
    <span className="row">
      {row.show ? <Badge kind="ok">{text.shown}</Badge> : <Badge>{text.hidden}</Badge>}
      {row.is_keyless && <Badge kind="info">{text.keyless}</Badge>}
      {why.length > 0 && <Badge kind="warn">{text.unseen(why.join('; '))}</Badge>}
    </span>
  );
}
