import { LinkButton } from '../../parts/Button';
import { Badge } from '../../parts/Badge';
import { useCan } from '../../app/session';
import { useBulkVerbs } from '../../parts/bulkVerbs';
import { ListPage } from '../../parts/ListPage';
import { Needs } from '../../parts/Needs';
import { Time } from '../../parts/Time';
import { short, percent } from '../../text/en';
import { Effect } from './Effect';
import { NewAPI } from './NewAPI';
import { OneAPI } from './OneAPI';
import { loadRows, loadText, type APIRow } from './read';
import { text as t } from './text';
import css from './apis.module.css';

const options = (names: Record<string, string>) => Object.entries(names).map(([value, label]) => ({ value, label }));

/** The share of calls that failed; from 5 % on it is marked. */
function Errors({ row }: { row: APIRow }) {
  if (row.calls_24h === 0) return '–';
  const share = row.errors_24h / row.calls_24h;
  return share >= 0.05 ? <Badge kind="warn">{percent(share)}</Badge> : percent(share);
}

function APIs() {
  const may = useCan('editor');
  const { bulk, dialog } = useBulkVerbs<APIRow>({
    kind: 'apis',
    chosen: (row) => ({ id: row.api_id, name: row.name || row.api_id }),
    load: async (id, signal) => (await loadText(id, signal)).text,
    effect: (effect) => <Effect effect={effect} />,
    labelsNote: t.labelsNote,
  });
  const create = (
    <Needs role="editor">
      <LinkButton kind="primary" to="/apis/new">
        {t.create}
      </LinkButton>
    </Needs>
  );
  return (
    <>
    <ListPage<APIRow>
      title={t.title}
      actions={create}
      label={t.label}
      things={t.things}
      queryKey={['apis']}
      load={loadRows}
      on={['revision']}
      search={t.search}
      edits={may && 'name'}
      filters={[
        { name: 'kind', label: t.filters.kind, options: options(t.kinds) },
        { name: 'auth', label: t.filters.auth, options: options(t.auths) },
        { name: 'active', label: t.filters.active, options: options(t.states) },
      ]}
      columns={[
        { id: 'name', label: t.columns.name, sort: 'name', cell: (row) => row.name || row.api_id },
        { id: 'path', label: t.columns.path, sort: 'listen_path', cell: (row) => <span className={css.path}>{row.domain + row.listen_path}</span> },
        { id: 'kind', label: t.columns.kind, wide: true, cell: (row) => t.kinds[row.kind] },
        { id: 'auth', label: t.columns.auth, wide: true, cell: (row) => row.auth.map((one) => t.auths[one] ?? one).join(', ') },
        { id: 'state', label: t.filters.active, cell: (row) => (row.active ? <Badge kind="ok">{t.states.true}</Badge> : <Badge>{t.states.false}</Badge>) },
        { id: 'calls', label: t.columns.calls, end: true, wide: true, cell: (row) => short(row.calls_24h) },
        { id: 'errors', label: t.columns.errors, end: true, wide: true, cell: (row) => <Errors row={row} /> },
        {
          id: 'changed',
          label: t.columns.changed,
          sort: 'updated_at',
          wide: true,
          cell: (row) => (
            <>
              {t.by(row.changed_by)}
              <Time at={row.updated_at} />
            </>
          ),
        },
      ]}
      rowKey={(row) => row.api_id}
      rowName={(row) => row.name || row.api_id}
      rowTo={(row) => `/apis/${encodeURIComponent(row.api_id)}`}
      bulk={bulk}
      empty={{ ...t.none, action: create, command: `curl -X POST ${location.origin}/api/apis -H "Authorization: $KEY" -d '{"name":"orders","proxy":{"listen_path":"/orders/","target_url":"https://orders.example.com/"}}'` }}
    />
    {dialog}
    </>
  );
}

export const pages = { '/apis': APIs, '/apis/new': NewAPI, '/apis/$id': OneAPI, '/apis/$id/$tab': OneAPI };
