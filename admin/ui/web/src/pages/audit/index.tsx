import { useState } from 'react';
import { request } from '../../api';
import { Facts } from '../../parts/Card';
import { Dialog } from '../../parts/Dialog';
import { Link } from '../../parts/Link';
import { ListPage, type Column } from '../../parts/ListPage';
import { Time } from '../../parts/Time';
import { useURLState } from '../../parts/urlState';
import css from './audit.module.css';
import { text } from './text';

export const pages = { '/audit': Audit };

interface Entry {
  id: number;
  at: string;
  actor: string;
  actor_kind: string;
  ip: string;
  action: string;
  object_kind: string;
  object_id: string;
  revision: number | null;
  before: unknown;
  after: unknown;
}

/** Ids are long and differ at their ends. */
const cut = (id: string) => (id.length > 24 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id);

const kindOf = (entry: Entry) => text.kinds[entry.object_kind] ?? entry.object_kind;

const columns: Column<Entry>[] = [
  { id: 'action', label: text.columns.action, cell: (row) => <span className={css.action}>{row.action}</span> },
  { id: 'object', label: text.columns.object, cell: (row) => <span title={row.object_id}>{`${kindOf(row)} ${cut(row.object_id)}`}</span> },
  { id: 'who', label: text.columns.who, cell: (row) => row.actor },
  { id: 'from', label: text.columns.from, cell: (row) => row.ip, wide: true },
  { id: 'when', label: text.columns.when, cell: (row) => <Time at={row.at} />, end: true },
];

function Audit() {
  const [url, setURL] = useURLState();
  const [rows, setRows] = useState<Entry[]>([]);
  const open = rows.find((row) => String(row.id) === url.open);
  return (
    <>
      <ListPage<Entry>
        title={text.title}
        label={text.label}
        things={text.things}
        queryKey={['audit', url.object ?? '']}
        on={['revision']}
        load={async (query, signal) => {
          const answer = await request<{ audit: Entry[] | null; pages: number }>('GET', '/api/audit', {
            query: { p: query.page, page_size: 50, actor: query.q, object_kind: query.filters.kind, object_id: url.object },
            signal,
          });
          return { rows: answer.audit ?? [], pages: answer.pages };
        }}
        columns={columns}
        rowKey={(row) => String(row.id)}
        rowName={(row) => text.entry(row.action, `${kindOf(row)} ${row.object_id}`)}
        rowOpens={(row) => ({ open: String(row.id) })}
        openKey={url.open ?? ''}
        onRows={setRows}
        search={text.search}
        filters={[{ name: 'kind', label: text.kind, options: Object.entries(text.kinds).map(([value, label]) => ({ value, label })) }]}
        empty={text.empty}
      />
      {open && <Shown entry={open} onClose={() => setURL({ open: '' })} />}
    </>
  );
}

/** One entry with the state before and after. */
function Shown({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  return (
    <Dialog title={text.entry(entry.action, kindOf(entry))} onClose={onClose} wide>
      <Facts
        of={[
          [text.facts.object, <span key="object" className="mono">{entry.object_id}</span>],
          [text.facts.who, entry.actor],
          [text.facts.when, <Time key="at" at={entry.at} as="full" />],
          [text.facts.from, entry.ip || text.absent],
          [text.facts.revision, entry.revision ? <Link key="revision" to={`/changes/${entry.revision}`}>{entry.revision}</Link> : text.absent],
        ]}
      />
      <div className={css.states}>
        <State label={text.before} value={entry.before} />
        <State label={text.after} value={entry.after} />
      </div>
    </Dialog>
  );
}

function State({ label, value }: { label: string; value: unknown }) {
  return (
    <section>
      <h3>{label}</h3>
      {value === null || value === undefined ? (
        <p className="muted">{text.absent}</p>
      ) : (
        <pre className={css.state} tabIndex={0} aria-label={label}>
          {JSON.stringify(value, null, 2)}
        </pre>
      )}
    </section>
  );
}
