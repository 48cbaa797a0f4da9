import { request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { Card, Facts } from '../../parts/Card';
import { Link } from '../../parts/Link';
import { List, type Column } from '../../parts/ListPage';
import { Loaded } from '../../parts/Loaded';
import { Page } from '../../parts/Page';
import { seconds, t } from '../../text/en';
import { text } from './text';

export const pages = { '/events': Events };

interface Handler {
  api_id: string;
  api_name: string;
  event: string;
  handler: string;
  target: string;
  event_timeout: number;
  disabled: boolean;
}

const eventOf = (row: Handler) => (text.events[row.event] ? `${row.event}: ${text.events[row.event]}` : row.event);

const columns: Column<Handler>[] = [
  { id: 'api', label: text.columns.api, cell: (row) => row.api_name || row.api_id },
  { id: 'event', label: text.columns.event, cell: eventOf },
  { id: 'handler', label: text.columns.handler, cell: (row) => text.kinds[row.handler] ?? row.handler, wide: true },
  { id: 'target', label: text.columns.target, cell: (row) => row.target, wide: true },
  { id: 'cooldown', label: text.columns.cooldown, cell: (row) => (row.event_timeout ? seconds(row.event_timeout) : t.nothing), wide: true },
  { id: 'state', label: text.columns.state, cell: (row) => (row.disabled ? <Badge>{text.off}</Badge> : <Badge kind="ok">{text.on}</Badge>) },
];

function Events() {
  return (
    <Page title={text.title}>
      <Card title={text.handlers}>
        <List<Handler>
          label={text.label}
          queryKey={['events']}
          on={['revision']}
          load={async (query, signal) => {
            const all = (await request<{ handlers: Handler[] | null }>('GET', '/api/events', { signal })).handlers ?? [];
            const wanted = query.q.toLowerCase();
            return { rows: all.filter((row) => `${row.api_name} ${row.api_id} ${eventOf(row)} ${row.target}`.toLowerCase().includes(wanted)) };
          }}
          columns={columns}
          rowKey={(row) => `${row.api_id} ${row.event} ${row.handler} ${row.target}`}
          rowName={(row) => `${row.api_name}, ${row.event}`}
          rowTo={(row) => `/apis/${encodeURIComponent(row.api_id)}`}
          search={text.search}
          empty={text.empty}
        />
      </Card>
      <Monitors />
    </Page>
  );
}

/** The settings of monitors and of the process's own events. */
function Monitors() {
  const may = useCan('admin');
  const query = useRead(['settings', 'all'], (signal) => request<{ settings: { key: string; value: string }[] | null }>('GET', '/api/settings', { signal }), {
    enabled: may,
  });
  return (
    <Card title={text.monitors}>
      <p>
        {text.monitorsText} {text.certificates} <Link to="/certificates">{text.toCertificates}</Link>
      </p>
      {may ? (
        <Loaded query={query} lines={4}>
          {(data) => <Facts of={(data.settings ?? []).filter((one) => /^(monitor|events)\./.test(one.key)).map((one) => [one.key, one.value || t.nothing])} />}
        </Loaded>
      ) : (
        <p className="muted">{text.forAdmins}</p>
      )}
    </Card>
  );
}
