import { Badge } from '../../parts/Badge';
import { LinkButton } from '../../parts/Button';
import { useCan } from '../../app/session';
import { useBulkVerbs } from '../../parts/bulkVerbs';
import { ListPage } from '../../parts/ListPage';
import { Needs } from '../../parts/Needs';
import { Time } from '../../parts/Time';
import { number } from '../../text/en';
import { NewPolicy } from './New';
import { Effect, OnePolicy } from './One';
import { loadRows, loadText, type PolicyRow } from './read';
import { text as t } from './text';

/** A limit: 0 sets nothing, -1 is unlimited. */
function limit(value: number, shown: string) {
  if (value === 0) return <span className="muted">{t.notSet}</span>;
  return value < 0 ? t.unlimited : shown;
}

function Policies() {
  const may = useCan('editor');
  const { bulk, dialog } = useBulkVerbs<PolicyRow>({
    kind: 'policies',
    chosen: (row) => ({ id: row.id, name: row.name || row.id }),
    load: async (id, signal) => (await loadText(id, signal)).text,
    effect: (effect) => <Effect effect={effect} />,
  });
  const create = (
    <Needs role="editor">
      <LinkButton kind="primary" to="/policies/new">
        {t.create}
      </LinkButton>
    </Needs>
  );
  return (
    <>
    <ListPage<PolicyRow>
      title={t.title}
      label={t.title}
      things={t.things}
      actions={create}
      queryKey={['policies']}
      on={['revision']}
      load={loadRows}
      search={t.search}
      edits={may && 'name'}
      filters={[{ name: 'active', label: t.filterActive, options: t.inUse }]}
      columns={[
        { id: 'name', label: t.columns.name, sort: 'name', cell: (row) => row.name || row.id },
        {
          id: 'state',
          label: t.columns.state,
          cell: (row) => (
            <>
              <Badge kind={row.state === 'active' ? 'ok' : 'danger'}>{t.states[row.state] ?? row.state}</Badge> {row.limits.enforcement === 'measure' && <Badge kind="warn">{t.reportOnly}</Badge>}
            </>
          ),
        },
        { id: 'rate', label: t.columns.rate, end: true, cell: ({ limits }) => limit(limits.rate, t.rate(limits.rate, limits.per)) },
        { id: 'quota', label: t.columns.quota, end: true, wide: true, cell: ({ limits }) => limit(limits.quota_max, t.quota(limits.quota_max, limits.quota_renewal_rate)) },
        { id: 'depth', label: t.columns.depth, end: true, wide: true, cell: ({ limits }) => limit(limits.max_query_depth, number(limits.max_query_depth)) },
        { id: 'apis', label: t.columns.apis, end: true, cell: (row) => number(row.apis) },
        { id: 'labels', label: t.columns.labels, wide: true, cell: (row) => row.labels.join(', ') },
        {
          id: 'changed',
          label: t.columns.changed,
          sort: 'updated_at',
          wide: true,
          cell: (row) => (
            <>
              {row.changed_by && `${row.changed_by}, `}
              <Time at={row.updated_at} />
            </>
          ),
        },
      ]}
      rowKey={(row) => row.id}
      rowName={(row) => row.name || row.id}
      rowTo={(row) => `/policies/${encodeURIComponent(row.id)}`}
      bulk={bulk}
      empty={{ ...t.none, action: create, command: `curl -X POST ${location.origin}/api/portal/policies -H "Authorization: $KEY" -d '{"id":"gold","name":"Gold","rate":100,"per":60,"access_rights":{"orders":{"api_id":"orders"}}}'` }}
    />
    {dialog}
    </>
  );
}

export const pages = { '/policies': Policies, '/policies/new': NewPolicy, '/policies/$id': OnePolicy, '/policies/$id/$tab': OnePolicy };
