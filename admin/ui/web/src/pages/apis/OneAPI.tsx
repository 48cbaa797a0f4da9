// One API: its tabs are views of one draft, which only the review sheet writes.
import { useNavigate, useParams } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useRead } from '../../api/query';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { LinkButton, Button } from '../../parts/Button';
import { ID } from '../../parts/Copy';
import { TabbedDraft, useDraft, type Base, type Draft } from '../../parts/draft';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { Loaded } from '../../parts/Loaded';
import { Opened } from '../../parts/Opened';
import { Skeleton } from '../../parts/Skeleton';
import { APIPlayground } from '../../playground/APIPlayground';
import { useFieldInAddress } from '../../parts/fieldInAddress';
import { Effect } from './Effect';
import { TabFields, tabOf } from './Fields';
import { HistoryTab, UsesTab } from './Looks';
import { OperationsTab } from './Operations';
import { authsOf, Overview } from './Overview';
import { RawTab } from './Raw';
import { batchOf, loadEffect, loadText, loadUses, remove, save, validate } from './read';
import { SchemaTab } from './Schema';
import { StreamsTab } from './streams/Streams';
import { text as t } from './text';
import { TrafficTab } from './Traffic';

const Supergraph = lazy(() => import('./graphs/Supergraph'));
const Sources = lazy(() => import('./graphs/Sources'));

export function OneAPI() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const base = useRead(['api', id, 'text'], (signal) => loadText(id, signal), { on: ['revision'] });
  return (
    <Opened query={base} title={id} what={t.what(id)}>
      {(text) => <Editing key={id} id={id} base={text} />}
    </Opened>
  );
}

function Editing({ id, base }: { id: string; base: Base }) {
  const { tab: open } = useParams({ strict: false }) as { tab?: string };
  const may = useCan('editor');
  const draft = useDraft({ id: `api:${id}`, base, validate: may ? validate : undefined });
  const name = draft.get<string>('name') || id;
  const at = `/apis/${encodeURIComponent(id)}`;
  useFieldInAddress({ home: at, open, of: tabOf });
  const graphql = draft.get('graphql.enabled') === true;
  const streams = Object.keys(draft.get<object>(['x-svc-streaming', 'streams']) ?? {}).length > 0;
  const shown = (tab: string) => {
    switch (tab) {
      case 'operations':
      case 'playground':
        return graphql;
      case 'streams':
        return streams || open === tab;
      case 'subgraphs':
        return (graphql && draft.get('graphql.execution_mode') === 'supergraph') || open === tab;
      case 'sources':
        return (graphql && draft.get('graphql.execution_mode') === 'executionEngine') || open === tab;
    }
    return tab !== 'schema' || !streams;
  };
  const keyed = authsOf(draft).includes(t.auths.token!);
  return (
    <TabbedDraft
      draft={draft}
      may={may}
      name={name}
      note={<>{draft.get('active') === false ? <Badge>{t.states.false}</Badge> : <Badge kind="ok">{t.states.true}</Badge>} <ID value={id} /></>}
      actions={
        keyed && (
          <LinkButton to="/keys/new" search={{ api: id }}>
            {t.newKey}
          </LinkButton>
        )
      }
      list="/apis"
      at={at}
      tabs={Object.entries(t.tabs).filter(([one]) => shown(one)).map(([one, label]) => ({ name: one, label }))}
      tabsLabel={t.tabsLabel(name)}
      tabOf={tabOf}
      problems={<ProblemList draft={draft} at={at} />}
      queries={{ object: ['api', id], list: ['apis'] }}
      review={{
        what: t.what(name),
        effect: async (text, signal) => <Effect effect={await loadEffect(text, signal)} />,
        batch: batchOf,
        publish: (it) => save(id, it),
        reload: () => loadText(id),
      }}
      removal={{ verb: t.remove.verb, title: t.remove.title(name), run: () => remove(id), goesWith: <GoesWith id={id} /> }}
    >
      <Tab id={id} tab={open ?? 'overview'} draft={draft} may={may} />
    </TabbedDraft>
  );
}

/** Problems as links to the tabs that have their fields. */
function ProblemList({ draft, at }: { draft: Draft; at: string }) {
  const navigate = useNavigate();
  const problems = draft.problems.slice(0, 20);
  return (
    <ul>
      {problems.map((problem, n) => (
        <li key={n}>
          <Button kind="quiet" dense onClick={() => void navigate({ to: problem.path ? `${at}/${tabOf(problem.path)}` : `${at}/raw`, search: { at: problem.path || undefined } as never })}>
            {problem.path || t.tabs.raw}
          </Button>{' '}
          {problem.message}
        </li>
      ))}
    </ul>
  );
}

function Tab({ id, tab, draft, may }: { id: string; tab: string; draft: Draft; may: boolean }) {
  const fields = <TabFields draft={draft} tab={tab} disabled={!may} />;
  switch (tab) {
    case 'overview':
      return <Overview id={id} draft={draft} fields={fields} />;
    case 'routing':
    case 'auth':
    case 'limits':
    case 'versions':
      return fields;
    case 'schema':
      return <SchemaTab id={id} draft={draft} may={may} fields={fields} />;
    case 'operations':
      return <OperationsTab draft={draft} fields={fields} />;
    case 'playground':
      return <APIPlayground id={id} />;
    case 'streams':
      return <StreamsTab id={id} draft={draft} may={may} />;
    case 'subgraphs':
      return (
        <Suspense fallback={<Skeleton lines={12} />}>
          <Supergraph id={id} draft={draft} may={may} />
        </Suspense>
      );
    case 'sources':
      return (
        <Suspense fallback={<Skeleton lines={12} />}>
          <Sources id={id} draft={draft} may={may} />
        </Suspense>
      );
    case 'traffic':
      return <TrafficTab id={id} graphql={draft.get('graphql.enabled') === true} />;
    case 'uses':
      return <UsesTab id={id} />;
    case 'history':
      return <HistoryTab id={id} />;
    case 'raw':
      return <RawTab draft={draft} may={may} />;
  }
  return <ErrorPanel failure={new Error(`There is no tab ${tab}.`)} />;
}

function GoesWith({ id }: { id: string }) {
  const uses = useRead(['api', id, 'uses'], (signal) => loadUses(id, signal));
  return (
    <Loaded query={uses} lines={2}>
      {(all) => (
        <>
          <p>{t.remove.goes(all.policy_count, t.keys(all.keys, all.keys_capped), all.catalogue_count, all.calls_30d)}</p>
          {all.supergraphs.length > 0 && <p>{t.remove.supergraphs(all.supergraphs.map((one) => one.name))}</p>}
          <p>{t.remove.refused}</p>
        </>
      )}
    </Loaded>
  );
}
