import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { request, useRead } from '../../api';
import { pulse } from '../../app/pulse';
import { useCan } from '../../app/session';
import { useShortcuts } from '../../app/shortcuts';
import { useStore } from '../../lib';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card, Facts } from '../../parts/Card';
import { NumberField } from '../../parts/fields';
import { ListPage, type Column } from '../../parts/ListPage';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { useURLState } from '../../parts/urlState';
import css from './changes.module.css';
import { ConcernedKeys } from './Concerned';
import { Differences } from './Differences';
import { readDiff, readGateways, whatOf, type Gateway, type Revision } from './model';
import { Rollback } from './Rollback';
import { text } from './text';

export const pages = { '/changes': Changes, '/changes/$n': Change };

function Changes() {
  const now = useStore(pulse);
  const columns: Column<Revision>[] = [
    {
      id: 'revision',
      label: text.columns.revision,
      cell: (row) => row.revision,
    },
    { id: 'what', label: text.columns.what, cell: (row) => whatOf(row.summary) },
    { id: 'who', label: text.columns.who, cell: (row) => row.author },
    { id: 'reason', label: text.columns.reason, cell: (row) => row.reason, wide: true },
    { id: 'when', label: text.columns.when, cell: (row) => <Time at={row.at} />, end: true },
  ];
  return (
    <ListPage<Revision>
      title={text.title}
      note={now && now.gateways > 0 && text.all(now.up_to_date, now.gateways)}
      label={text.label}
      things={text.things}
      queryKey={['changes', 'list']}
      on={['revision']}
      load={async (query, signal) => {
        const answer = await request<{ revisions: Revision[] | null; pages: number }>('GET', '/api/config/revisions', {
          query: { p: query.page, page_size: 50 },
          signal,
        });
        return { rows: answer.revisions ?? [], pages: answer.pages };
      }}
      columns={columns}
      rowKey={(row) => String(row.revision)}
      rowName={(row) => text.revision(row.revision)}
      rowTo={(row) => `/changes/${row.revision}`}
      empty={text.empty}
    />
  );
}

function Change() {
  const { n } = useParams({ strict: false }) as { n: string };
  const [url, setURL] = useURLState();
  const now = useStore(pulse);
  const may = useCan('admin');
  const [back, setBack] = useState<number>();
  const revision = useRead(['changes', n], (signal) => request<Revision>('GET', `/api/config/revisions/${encodeURIComponent(n)}`, { signal }));
  const diff = useRead(['changes', 'diff', n, url.against ?? ''], (signal) => readDiff(encodeURIComponent(n), url.against, signal), { keep: true });
  const own = Number(n);
  const current = now?.revision ?? own;
  const before = useRead(['changes', 'diff', n, ''], (signal) => readDiff(encodeURIComponent(n), undefined, signal)).data?.from;
  useShortcuts(
    may && before !== undefined && before > 0 ? [{ keys: 'r', label: text.rollback.key, run: () => setBack(before) }] : [],
  );
  const verbs = (
    <Needs role="admin" say>
      {before !== undefined && before > 0 && (
        <Button kind="danger" onClick={() => setBack(before)}>
          {text.undo(before)}
        </Button>
      )}
      {own !== current && (
        <Button kind="danger" onClick={() => setBack(own)}>
          {text.here}
        </Button>
      )}
    </Needs>
  );
  return (
    <Page title={text.revision(n)} note={own === current && <Badge kind="ok">{text.current}</Badge>} actions={revision.data && verbs}>
      <Loaded query={revision} what={text.revision(n)}>
        {(data) => (
          <Facts
            of={[
              [text.facts.by, data.author],
              [text.facts.when, <Time key="at" at={data.at} as="full" />],
              [text.facts.source, text.sources[data.source] ?? data.source],
              [text.facts.reason, data.reason || <span className="muted">{text.facts.noReason}</span>],
              [text.columns.what, whatOf(data.summary)],
            ]}
          />
        )}
      </Loaded>
      {revision.data && (
        <>
          <Arrival revision={own} />
          <Card
            title={diff.data ? text.difference(diff.data.from, diff.data.to) : text.inText}
            actions={
              <div className={css.compare}>
                <NumberField label={text.compare} value={url.against ? Number(url.against) : undefined} onChange={(value) => setURL({ against: value ? String(value) : '' })} />
              </div>
            }
          >
            <Loaded query={diff}>{(data) => <Differences diff={data} />}</Loaded>
          </Card>
          <Card title={text.concerned.title}>
            <ConcernedKeys revision={own} against={url.against} />
          </Card>
        </>
      )}
      {back !== undefined && <Rollback to={back} from={current} onClose={() => setBack(undefined)} />}
    </Page>
  );
}

/** Whether each gateway has a revision, or a later one. */
function Arrival({ revision }: { revision: number }) {
  const query = useRead(['gateways', 'arrival'], readGateways, { on: ['revision', 'gateways', 'up_to_date'] });
  return (
    <Card title={text.arrival}>
      <Loaded query={query} lines={2}>
        {(data) =>
          (data.gateways ?? []).length === 0 ? (
            <p>{text.noGateways}</p>
          ) : (
            <ul className="stack">
              {(data.gateways ?? []).map((one) => (
                <li key={one.name} className="row">
                  <span>{one.name}</span>
                  <Arrived gateway={one} revision={revision} current={Number(data.revision)} />
                  <Time at={one.seen_at} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

function Arrived({ gateway, revision, current }: { gateway: Gateway; revision: number; current: number }) {
  if (gateway.error) return <Badge kind="danger">{`${text.failed}: ${gateway.error}`}</Badge>;
  if (Number(gateway.revision) >= revision && (revision < current || gateway.up_to_date)) return <Badge kind="ok">{text.arrived}</Badge>;
  return <Badge kind="warn">{Number(gateway.revision) >= revision ? text.silent : text.behind(gateway.revision)}</Badge>;
}
