import { request, useRead } from '../../api';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { List, type Column } from '../../parts/ListPage';
import { Loaded } from '../../parts/Loaded';
import { Page } from '../../parts/Page';
import { Tabs } from '../../parts/Tabs';
import css from './settings.module.css';
import { text } from './text';

export const pages = { '/settings': Settings, '/settings/checks': Checks };

interface Setting {
  key: string;
  value: string;
  origin: string;
}

interface Finding {
  state: 'ok' | 'warn' | 'fail';
  check: string;
  detail: string;
  remedy?: string;
}

const tabs = (
  <Tabs
    label={text.tabs}
    tabs={[
      { to: '/settings', label: text.settings },
      { to: '/settings/checks', label: text.checks },
    ]}
  />
);

const columns: Column<Setting>[] = [
  { id: 'key', label: text.columns.key, cell: (row) => <span className="mono">{row.key}</span> },
  { id: 'value', label: text.columns.value, cell: (row) => <span className={css.value}>{row.value}</span> },
  { id: 'origin', label: text.columns.origin, cell: (row) => row.origin, wide: true },
];

function Settings() {
  return (
    <Page title={text.title}>
      {tabs}
      <p className="muted">{text.note}</p>
      <List<Setting>
        label={text.label}
        queryKey={['settings']}
        load={async (query, signal) => {
          const all = (await request<{ settings: Setting[] | null }>('GET', '/api/settings', { signal })).settings ?? [];
          const wanted = query.q.toLowerCase();
          const { origin } = query.filters;
          return {
            rows: all.filter(
              (one) =>
                `${one.key} ${one.value} ${one.origin}`.toLowerCase().includes(wanted) && (!origin || (origin === 'default') === (one.origin === 'default')),
            ),
          };
        }}
        columns={columns}
        rowKey={(row) => row.key}
        rowName={(row) => row.key}
        search={text.search}
        filters={[{ name: 'origin', label: text.origin, options: Object.entries(text.origins).map(([value, label]) => ({ value, label })) }]}
        empty={text.empty}
      />
    </Page>
  );
}

const order = { fail: 0, warn: 1, ok: 2 };
const kinds = { fail: 'danger', warn: 'warn', ok: 'ok' } as const;

function Checks() {
  const query = useRead(['doctor'], (signal) => request<{ findings: Finding[] | null }>('GET', '/api/doctor', { signal }), { staleTime: 60_000 });
  return (
    <Page
      title={text.title}
      actions={
        <Button busy={query.isFetching} onClick={() => void query.refetch()}>
          {text.doctor.again}
        </Button>
      }
    >
      {tabs}
      <p role="status">{query.isFetching && text.doctor.running}</p>
      <Loaded query={query} what={text.doctor.label} lines={8}>
        {(data) => {
          const found = (data.findings ?? []).toSorted((a, b) => order[a.state] - order[b.state]);
          const count = (state: string) => found.filter((one) => one.state === state).length;
          return (
            <>
              <p>{text.doctor.summary(count('fail'), count('warn'))}</p>
              <ul className={css.findings} aria-label={text.doctor.label}>
                {found.map((one) => (
                  <li key={`${one.check} ${one.detail}`}>
                    <Badge kind={kinds[one.state]}>{text.doctor.states[one.state]}</Badge>
                    <div>
                      <strong>{one.check}</strong>: {one.detail}
                      {one.remedy && <p className="muted">{one.remedy}</p>}
                    </div>
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}
