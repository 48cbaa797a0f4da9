// One API: its tabs are views of one draft, which only the review sheet writes.
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useRead } from '../../api/query';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { Confirm } from '../../parts/Confirm';
import { ID } from '../../parts/Copy';
import { DraftBar, DraftOffer, ReviewSheet, useDraft, type Base, type Draft } from '../../parts/draft';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { Page } from '../../parts/Page';
import { Tabs } from '../../parts/Tabs';
import { APIPlayground } from '../../playground/APIPlayground';
import { toast } from '../../parts/toasts';
import { useFieldInAddress } from '../../parts/fieldInAddress';
import { queryClient } from '../../api/query';
import { Effect } from './Effect';
import { TabFields, tabOf } from './Fields';
import { HistoryTab, UsesTab } from './Looks';
import { OperationsTab } from './Operations';
import { authsOf, Overview } from './Overview';
import { RawTab } from './Raw';
import { loadEffect, loadText, loadUses, remove, save, validate } from './read';
import { SchemaTab } from './Schema';
import { text as t } from './text';
import { TrafficTab } from './Traffic';
import css from './apis.module.css';

export function OneAPI() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const base = useRead(['api', id, 'text'], (signal) => loadText(id, signal), { on: ['revision'] });
  return base.data ? (
    <Editing key={id} id={id} base={base.data} />
  ) : (
    <Page title={id}>
      <Loaded query={base} what={t.what(id)}>
        {() => null}
      </Loaded>
    </Page>
  );
}

function Editing({ id, base }: { id: string; base: Base }) {
  const { tab: open } = useParams({ strict: false }) as { tab?: string };
  const tab = open ?? 'overview';
  const may = useCan('editor');
  const draft = useDraft({ id: `api:${id}`, base, validate: may ? validate : undefined });
  const [reviewing, setReviewing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const name = draft.get<string>('name') || id;
  const at = `/apis/${encodeURIComponent(id)}`;
  useFieldInAddress({ home: at, open, of: tabOf });
  const graphql = draft.get('graphql.enabled') === true;
  const keyed = authsOf(draft).includes(t.auths.token!);
  const on = (one: string) => draft.problems.filter((problem) => problem.path !== '' && tabOf(problem.path) === one).length;
  const names = Object.keys(t.tabs).filter((one) => graphql || !['operations', 'playground'].includes(one));
  const reload = () => loadText(id);
  return (
    <Page
      title={name}
      note={<>{draft.get('active') === false ? <Badge>{t.states.false}</Badge> : <Badge kind="ok">{t.states.true}</Badge>} <ID value={id} /></>}
      actions={
        may && (
          <>
            {keyed && (
              <LinkButton to="/keys/new" search={{ api: id }}>
                {t.newKey}
              </LinkButton>
            )}
            <Button kind="danger" onClick={() => setDeleting(true)}>{t.remove.verb} …</Button>
          </>
        )
      }
    >
      <Tabs label={t.tabsLabel(name)} tabs={names.map((one) => ({ to: one === 'overview' ? at : `${at}/${one}`, label: t.tabs[one]!, problems: on(one) }))} />
      <DraftOffer draft={draft} />
      <FieldProblems problems={draft.problems}>
        <div className={css.stack}>
          {draft.problems.length > 0 && draft.changed && <ProblemList draft={draft} at={at} />}
          <Tab id={id} tab={tab} draft={draft} may={may} />
        </div>
      </FieldProblems>
      {may && <DraftBar draft={draft} onReview={() => setReviewing(true)} within={at} />}
      {reviewing && (
        <ReviewSheet
          what={t.what(name)}
          draft={draft}
          effect={async (text, signal) => <Effect effect={await loadEffect(text, signal)} />}
          batch={(text) => `{"apis":[${text}]}`}
          publish={(it) => save(id, it)}
          reload={reload}
          onDone={() => {
            setReviewing(false);
            void queryClient.invalidateQueries({ queryKey: ['api', id] });
            void queryClient.invalidateQueries({ queryKey: ['apis'] });
          }}
          onClose={() => setReviewing(false)}
        />
      )}
      {deleting && (
        <Confirm
          title={t.remove.title(name)}
          name={name}
          verb={t.remove.verb}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            draft.discard();
            await remove(id);
            await queryClient.invalidateQueries({ queryKey: ['apis'] });
            toast({ kind: 'ok', text: `${t.remove.verb}: ${name}` });
            void navigate({ to: '/apis' });
          }}
        >
          <GoesWith id={id} />
        </Confirm>
      )}
    </Page>
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
          <Button kind="quiet" dense onClick={() => void navigate({ to: problem.path ? `${at}/${tabOf(problem.path)}` : `${at}/raw` })}>
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
    case 'traffic':
      return <TrafficTab id={id} />;
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
          <p>{t.remove.refused}</p>
        </>
      )}
    </Loaded>
  );
}
