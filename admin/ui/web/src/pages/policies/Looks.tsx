// Tabs that only show: the keys of a policy, and what was changed.
import { useRead } from '../../api/query';
import { Badge } from '../../parts/Badge';
import { LinkButton } from '../../parts/Button';
import { Card, Facts } from '../../parts/Card';
import { History } from '../../parts/History';
import { Link } from '../../parts/Link';
import { List } from '../../parts/ListPage';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Time } from '../../parts/Time';
import { number, short } from '../../text/en';
import { loadHistory, loadKeys, loadUses, type KeyRow } from './read';
import { text as t } from './text';

/** How many keys, entries and requests have the policy. */
export function Uses({ id }: { id: string }) {
  const uses = useRead(['policy', id, 'uses'], (signal) => loadUses(id, signal), { on: ['revision', 'generation'] });
  return (
    <Card title={t.usesCard}>
      <Loaded query={uses} lines={3}>
        {(all) => (
          <Facts
            of={[
              [t.uses.keys, <Link to={`/policies/${encodeURIComponent(id)}/keys`}>{t.keys(all.keys, all.keys_capped)}</Link>],
              [t.uses.called, number(all.keys_called_24h)],
              ...(all.calls_30d === undefined ? [] : [[t.uses.calls, number(all.calls_30d)] as [string, string]]),
              [t.uses.catalogue, number(all.catalogue_count)],
              [t.uses.requests, number(all.pending_requests)],
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

export function KeysTab({ id }: { id: string }) {
  const name = (row: KeyRow) => row.alias || t.keysTab.unnamed(row.key_hash);
  return (
    <List<KeyRow>
      label={t.tabs.keys!}
      things={t.keyThings}
      queryKey={['keys', 'of', id]}
      on={['generation', 'usage_until']}
      load={(asked, signal) => loadKeys(id, asked, signal)}
      search={t.keysTab.search}
      filters={[{ name: 'active', label: t.keysTab.state, options: [{ value: 'true', label: t.keysTab.active }, { value: 'false', label: t.keysTab.refused }] }]}
      columns={[
        { id: 'key', label: t.keysTab.key, cell: name },
        { id: 'state', label: t.keysTab.state, cell: (row) => <Badge kind={row.active ? 'ok' : 'danger'}>{row.active ? t.keysTab.active : t.keysTab.refused}</Badge> },
        { id: 'developer', label: t.keysTab.developer, wide: true, cell: (row) => row.developer_email },
        { id: 'calls', label: t.keysTab.calls, end: true, cell: (row) => short(row.calls_24h) },
        { id: 'ends', label: t.keysTab.ends, wide: true, cell: (row) => (row.expires_at ? <Time at={row.expires_at} /> : <span className="muted">{t.keysTab.never}</span>) },
      ]}
      rowKey={(row) => row.key_hash}
      rowName={name}
      rowTo={(row) => `/keys/${encodeURIComponent(row.key_hash)}`}
      empty={{
        ...t.keysTab.none,
        action: (
          <Needs role="editor">
            <LinkButton to="/keys/new">{t.keysTab.create}</LinkButton>
          </Needs>
        ),
      }}
    />
  );
}

export function HistoryTab({ id }: { id: string }) {
  return <History of={['policy', id]} what={t.tabs.history} load={(page, signal) => loadHistory(id, page, signal)} />;
}
