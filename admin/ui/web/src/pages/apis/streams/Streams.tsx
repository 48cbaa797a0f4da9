// The streams of an API: what runs, how each is built, and how it is tried.
import { data, api, Failure, useRead } from '../../../api';
import { Badge } from '../../../parts/Badge';
import { Button } from '../../../parts/Button';
import { Card } from '../../../parts/Card';
import type { Draft } from '../../../parts/draft';
import { EmptyState } from '../../../parts/EmptyState';
import { ErrorPanel } from '../../../parts/ErrorPanel';
import { Time } from '../../../parts/Time';
import { useURLState } from '../../../parts/urlState';
import { AddStream, NodeDetail, StreamEditor } from './Edit';
import { Graph, GraphTable, PhaseBadge } from './Graph';
import { graphOf, liveOf, nodesOf, problemsOf, streamPath, type LiveStream } from './graph';
import { text as t } from './text';
import { Try } from './Try';
import css from './streams.module.css';

/** How often what runs is read again, in milliseconds. */
const every = 3_000;

const streamsOf = (draft: Draft) => draft.get<Record<string, unknown>>(['x-svc-streaming', 'streams']) ?? {};

export function StreamsTab({ id, draft, may }: { id: string; draft: Draft; may: boolean }) {
  const names = Object.keys(streamsOf(draft)).sort();
  const status = useRead(['api', id, 'streams'], (signal) => data(api.GET('/api/apis/streams/{id}/status', { params: { path: { id }, query: { page_size: 500 } }, signal })), { every, keep: true });
  const unpublished = status.error instanceof Failure && status.error.status === 404;
  return (
    <div className={css.stack}>
      {status.error && !unpublished && <ErrorPanel failure={status.error} retry={() => void status.refetch()} />}
      {!!status.data?.silent.length && (
        <p>
          <Badge kind="warn">{t.silent(status.data.silent)}</Badge>
        </p>
      )}
      {draft.changed && <p className="muted">{t.changedHere}</p>}
      {names.length === 0 && <EmptyState title={t.none.title} text={t.none.text} />}
      {names.map((name) => (
        <OneStream key={name} id={id} name={name} draft={draft} may={may} live={status.data && liveOf(status.data.streams, name)} known={status.data !== undefined || unpublished} />
      ))}
      {may && (
        <Card title={t.add}>
          <p className="muted">{t.addHelp}</p>
          <AddStream names={names} onAdd={(name, stream) => draft.set(streamPath(name), stream)} />
        </Card>
      )}
    </div>
  );
}

function OneStream({ id, name, draft, may, live, known }: { id: string; name: string; draft: Draft; may: boolean; live?: LiveStream; known: boolean }) {
  const [url, setURL] = useURLState();
  const mine = url.stream === name;
  const open = mine ? url.show : undefined;
  const show = (what: string) => setURL({ stream: name, show: open === what ? '' : what, node: mine ? url.node : '' });
  const graph = graphOf(draft.get(streamPath(name)));
  const problems = problemsOf(draft.problems, name);
  const selected = mine ? nodesOf(graph).find((node) => node.path === url.node) : undefined;
  return (
    <Card
      title={name}
      actions={
        <span className="row">
          <Button dense aria-expanded={open === 'try'} aria-label={t.tryNamed(name)} onClick={() => show('try')}>
            {t.try}
          </Button>
          <Button dense aria-expanded={open === 'edit'} aria-label={t.editNamed(name)} onClick={() => show('edit')}>
            {t.edit}
          </Button>
          {may && (
            <Button dense kind="danger" aria-label={t.removeNamed(name)} onClick={() => draft.set(streamPath(name), undefined)}>
              {t.remove}
            </Button>
          )}
        </span>
      }
    >
      <State live={live} known={known} />
      <Graph name={name} graph={graph} live={live} selected={selected?.path} problems={new Set(problems.map((one) => one.path))} onSelect={(node) => setURL({ stream: name, node, show: open })} />
      <GraphTable name={name} graph={graph} live={live} />
      {selected && <NodeDetail key={selected.path} name={name} node={selected} live={live?.nodes.get(selected.path)} draft={draft} may={may} problems={problems} />}
      {open === 'edit' && <StreamEditor name={name} draft={draft} may={may} problems={problems} />}
      {open === 'try' && <Try id={id} name={name} draft={draft} />}
    </Card>
  );
}

function State({ live, known }: { live?: LiveStream; known: boolean }) {
  if (!live) return <p className="muted">{known ? t.notRunning : ''}</p>;
  return (
    <>
      <p className={css.head}>
        <PhaseBadge phase={live.phase} /> <span>{t.running(live.gateways.length)}</span>
        <span className="muted">
          {t.counts(live.in, live.out, live.inFlight)}
          {live.oldest > 1 && `, ${t.oldest(live.oldest)}`}
        </span>
      </p>
      <p>
        {live.lastError ? (
          <>
            {t.lastError}: {live.lastError} <Time at={live.lastErrorAt} />
          </>
        ) : (
          <span className="muted">{t.noError}</span>
        )}
      </p>
    </>
  );
}
