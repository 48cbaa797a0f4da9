// One policy: its tabs are views of one draft, which only the review sheet writes.
import { useNavigate, useParams } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useRead } from '../../api/query';
import type { components } from '../../api.gen';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { CodeEditor } from '../../parts/code';
import { Concerned } from '../../parts/Concerned';
import { ID } from '../../parts/Copy';
import { TabbedDraft, useDraft, type Base, type Draft } from '../../parts/draft';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { Loaded } from '../../parts/Loaded';
import { Opened } from '../../parts/Opened';
import { Skeleton } from '../../parts/Skeleton';
import { useFieldInAddress, useOffsetInAddress } from '../../parts/fieldInAddress';
import { AccessTab } from './Access';
import { PolicyFields } from './Form';
import { HistoryTab, KeysTab, Uses } from './Looks';
import { apiOf, tabOf } from './paths';
import { ReplayTab } from './Replay';
import { batchOf, loadEffect, loadText, loadUses, remove, save, validate } from './read';
import { t as common } from '../../text/en';
import { text as t } from './text';

const FieldsTab = lazy(() => import('./Fields'));

export function OnePolicy() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const base = useRead(['policy', id, 'text'], (signal) => loadText(id, signal), { on: ['revision'] });
  return (
    <Opened query={base} title={id} what={t.what(id)}>
      {(text) => <Editing key={id} id={id} base={text} />}
    </Opened>
  );
}

function Notes({ draft, id }: { draft: Draft; id: string }) {
  const state = draft.get<string>('state') || 'active';
  const used = state === 'active' && draft.get('active') !== false && draft.get('is_inactive') !== true;
  return (
    <>
      {used ? <Badge kind="ok">{t.states.active}</Badge> : <Badge kind="danger">{state === 'active' ? t.keysTab.refused : (t.states[state] ?? state)}</Badge>} {draft.get('enforcement') === 'measure' && <Badge kind="warn">{t.reportOnly}</Badge>} <ID value={id} />
    </>
  );
}

function Editing({ id, base }: { id: string; base: Base }) {
  const { tab: open } = useParams({ strict: false }) as { tab?: string };
  const may = useCan('editor');
  const draft = useDraft({ id: `policy:${id}`, base, validate: may ? validate : undefined });
  const name = draft.get<string>('name') || id;
  const at = `/policies/${encodeURIComponent(id)}`;
  useFieldInAddress({ home: at, open, of: tabOf });
  return (
    <TabbedDraft
      draft={draft}
      may={may}
      name={name}
      note={<Notes draft={draft} id={id} />}
      list="/policies"
      at={at}
      tabs={Object.entries(t.tabs).map(([one, label]) => ({ name: one, label }))}
      tabsLabel={t.tabsLabel(name)}
      tabOf={tabOf}
      problems={<ProblemList draft={draft} at={at} />}
      queries={{ object: ['policy', id], list: ['policies'] }}
      review={{
        what: t.what(name),
        effect: async (text, signal) => <Effect effect={await loadEffect(text, signal)} />,
        batch: batchOf,
        publish: (it) => save(id, it),
        reload: () => loadText(id),
      }}
      removal={{ verb: t.remove.verb, title: t.remove.title(name), run: () => remove(id), goesWith: <GoesWith id={id} /> }}
    >
      <Tab id={id} tab={open ?? 'overview'} draft={draft} may={may} at={at} />
    </TabbedDraft>
  );
}

/** Problems as links to the tabs that have their fields. */
export function ProblemList({ draft, at }: { draft: Draft; at?: string }) {
  const navigate = useNavigate();
  return (
    <ul>
      {draft.problems.slice(0, 20).map((problem, n) => {
        const tab = problem.path ? tabOf(problem.path) : 'raw';
        const to = tab === 'overview' ? at : `${at}/${tab}`;
        return (
          <li key={n}>
            {at ? (
              <Button kind="quiet" dense onClick={() => void navigate({ to: to!, search: (tab === 'fields' ? { api: apiOf(problem.path) } : {}) as never })}>
                {problem.path || t.tabs.raw}
              </Button>
            ) : (
              problem.path && <code>{problem.path}</code>
            )}{' '}
            {problem.message}
          </li>
        );
      })}
    </ul>
  );
}

function Tab({ id, tab, draft, may, at }: { id: string; tab: string; draft: Draft; may: boolean; at: string }) {
  switch (tab) {
    case 'overview':
      return (
        <>
          <Uses id={id} />
          <PolicyFields draft={draft} disabled={!may} />
        </>
      );
    case 'apis':
      return <AccessTab draft={draft} may={may} at={at} />;
    case 'fields':
      return (
        <Suspense fallback={<Skeleton lines={8} />}>
          <FieldsTab draft={draft} may={may} at={at} />
        </Suspense>
      );
    case 'keys':
      return <KeysTab id={id} />;
    case 'replay':
      return <ReplayTab id={id} draft={draft} />;
    case 'history':
      return <HistoryTab id={id} />;
    case 'raw':
      return <RawTab draft={draft} may={may} />;
  }
  return <ErrorPanel failure={new Error(t.noTab(tab))} />;
}

function RawTab({ draft, may }: { draft: Draft; may: boolean }) {
  const goTo = useOffsetInAddress(draft.text);
  return (
    <Card title={t.tabs.raw}>
      <p className="muted">{t.raw.help}</p>
      <CodeEditor label={t.raw.label} language="json" value={draft.text} goTo={goTo} onChange={may ? draft.setText : undefined} readOnly={!may} problems={draft.problems} lines={32} />
    </Card>
  );
}

export function Effect({ effect }: { effect: components['schemas']['Effect'] }) {
  const { concerned } = effect;
  const rights = effect.rights ?? [];
  if ((effect.objects ?? []).length === 0) return <p>{common.review.unchanged}</p>;
  return (
    <>
      <p>{concerned.keys === 0 ? t.effect.none : t.effect.keys(t.keys(concerned.keys, concerned.keys >= 10_000), concerned.called)}</p>
      <Concerned whom={concerned} />
      {rights.length > 0 && (
        <ul>
          {rights.slice(0, 20).map((right, n) => (
            <li key={n}>
              {t.effect[right.direction](right.api_id)}: {right.text}
            </li>
          ))}
          {rights.length > 20 && <li>{t.effect.more(rights.length - 20)}</li>}
        </ul>
      )}
      {(effect.warnings ?? []).map((warning) => (
        <p key={warning} className="muted">
          {warning}
        </p>
      ))}
    </>
  );
}

function GoesWith({ id }: { id: string }) {
  const uses = useRead(['policy', id, 'uses'], (signal) => loadUses(id, signal));
  return (
    <Loaded query={uses} lines={2}>
      {(all) => (
        <>
          <p>{t.remove.goes(t.keys(all.keys, all.keys_capped), all.catalogue_count, all.pending_requests)}</p>
          <p>{t.remove.refused}</p>
        </>
      )}
    </Loaded>
  );
}
