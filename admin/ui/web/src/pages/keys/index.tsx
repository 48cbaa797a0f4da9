import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { request } from '../../api';
import { Badge } from '../../parts/Badge';
import { LinkButton } from '../../parts/Button';
import { ListPage, type Column } from '../../parts/ListPage';
import { Needs } from '../../parts/Needs';
import { Time, ago } from '../../parts/Time';
import { number, percent, short } from '../../text/en';
import type { Verb } from './Bulk';
import type { KeyRow } from './data';
import { NewKey } from './New';
import { EditPage, Overview, Refusals, Usage } from './One';
import { text } from './text';
import { useCan } from '../../app/session';

export const pages = { '/keys': Keys, '/keys/new': NewKey, '/keys/$hash': Overview, '/keys/$hash/edit': EditPage, '/keys/$hash/usage': Usage, '/keys/$hash/refusals': Refusals };

const Bulk = lazy(() => import('./Bulk'));

const verbs: Verb[] = ['activate', 'deactivate', 'policies', 'extend', 'labels', 'revoke'];

interface Answer {
  rows: KeyRow[];
  total: number;
  total_capped: boolean;
  pages: number;
}

const columns: Column<KeyRow>[] = [
  { id: 'name', label: text.key, sort: 'name', cell: (row) => row.alias || <span className="mono">{text.unnamed(row.key_hash)}</span> },
  { id: 'hash', label: text.hash, wide: true, cell: (row) => <span className="mono muted">{row.key_hash.slice(0, 12)}</span> },
  { id: 'state', label: text.state, cell: (row) => <Badge kind={row.active ? 'ok' : 'danger'}>{row.active ? text.active : text.inactive}</Badge> },
  {
    id: 'policies',
    label: text.policies,
    cell: (row) => (row.policy_count === 0 ? <span className="muted">{text.ownRights}</span> : `${row.policies.join(', ')}${row.policy_count > row.policies.length ? ` ${text.morePolicies(row.policy_count - row.policies.length)}` : ''}`),
  },
  { id: 'developer', label: text.developer, wide: true, cell: (row) => row.developer_email },
  { id: 'calls', label: text.calls, end: true, cell: (row) => short(row.calls_24h) },
  { id: 'errors', label: text.errors, end: true, wide: true, cell: (row) => (row.calls_24h > 0 ? <span title={number(row.errors_24h)}>{percent(row.errors_24h / row.calls_24h)}</span> : '') },
  { id: 'ends', label: text.ends, wide: true, cell: (row) => (row.expires_at ? <Time at={row.expires_at} /> : <span className="muted">{text.never}</span>) },
  { id: 'changed', label: text.changed, wide: true, cell: (row) => `${row.changed_by ? `${row.changed_by}, ` : ''}${ago(row.updated_at)}` },
];

function Keys() {
  const can = useCan('editor');
  const navigate = useNavigate();
  const [bulk, setBulk] = useState<{ verb: Verb; rows: KeyRow[] }>();
  return (
    <>
      <ListPage<KeyRow>
        title={text.title}
        label={text.title}
        things={text.things}
        actions={
          <Needs role="editor">
            <LinkButton kind="primary" to="/keys/new">
              {text.create}
            </LinkButton>
          </Needs>
        }
        queryKey={['keys', 'list']}
        on={['generation', 'usage_until']}
        search={text.search}
        filters={[{ name: 'active', label: text.state, options: text.states }]}
        columns={columns}
        rowKey={(row) => row.key_hash}
        rowName={(row) => row.alias || row.key_hash.slice(0, 12)}
        rowTo={(row) => `/keys/${encodeURIComponent(row.key_hash)}`}
        edits={can && ((row) => void navigate({ to: `/keys/${encodeURIComponent(row.key_hash)}/edit`, search: { at: 'alias' } as never }))}
        bulk={can ? verbs.map((verb) => ({ label: text.bulk[verb], danger: verb === 'revoke' || verb === 'deactivate', run: () => Promise.resolve(), open: (rows) => setBulk({ verb, rows }) })) : undefined}
        load={async ({ q, page, sort, filters }, signal) => {
          const found = await request<Answer>('GET', '/api/keys', { query: { view: 'row', page_size: 50, p: page, q, sort, active: filters.active }, signal });
          return { rows: found.rows, pages: found.pages, total: found.total, capped: found.total_capped };
        }}
        empty={{ title: text.emptyTitle, text: text.emptyText, command: text.command, action: can ? <LinkButton to="/keys/new">{text.create}</LinkButton> : undefined }}
      />
      {bulk && (
        <Suspense fallback={null}>
          <Bulk {...bulk} onClose={() => setBulk(undefined)} />
        </Suspense>
      )}
    </>
  );
}
