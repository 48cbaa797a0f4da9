import { useNavigate } from '@tanstack/react-router';
import { useState, type ComponentProps, type ReactNode } from 'react';
import { queryClient } from '../../api/query';
import { Button } from '../Button';
import { Confirm } from '../Confirm';
import { FieldProblems } from '../fields';
import { Page } from '../Page';
import { Tabs } from '../Tabs';
import { toast } from '../toasts';
import { DraftBar, DraftOffer } from './DraftBar';
import { ReviewSheet } from './ReviewSheet';
import type { Draft } from './useDraft';
import css from './TabbedDraft.module.css';

/** The page of an object whose tabs are views of one draft, which only the review sheet writes. */
export function TabbedDraft(p: {
  draft: Draft;
  may: boolean;
  name: string;
  note: ReactNode;
  /** Verbs before that of the removal, for those who may edit. */
  actions?: ReactNode;
  /** Address of the list, and of the object below it. */
  list: string;
  at: string;
  tabs: { name: string; label: string }[];
  tabsLabel: string;
  /** The tab that has a field. */
  tabOf: (path: string) => string;
  problems: ReactNode;
  /** Keys of the queries that a publication changes: the object and the list. */
  queries: { object: string[]; list: string[] };
  review: Pick<ComponentProps<typeof ReviewSheet>, 'what' | 'effect' | 'batch' | 'publish' | 'reload'>;
  removal: { verb: string; title: string; run: () => Promise<unknown>; goesWith: ReactNode };
  children: ReactNode;
}) {
  const { draft, may, removal } = p;
  const [reviewing, setReviewing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const on = (tab: string) => draft.problems.filter((problem) => problem.path !== '' && p.tabOf(problem.path) === tab).length;
  return (
    <Page
      title={p.name}
      note={p.note}
      actions={
        may && (
          <>
            {p.actions}
            <Button kind="danger" onClick={() => setDeleting(true)}>
              {removal.verb} …
            </Button>
          </>
        )
      }
    >
      <Tabs label={p.tabsLabel} tabs={p.tabs.map((tab, n) => ({ to: n === 0 ? p.at : `${p.at}/${tab.name}`, label: tab.label, problems: on(tab.name) }))} />
      <DraftOffer draft={draft} />
      <FieldProblems problems={draft.problems}>
        <div className={css.stack}>
          {draft.problems.length > 0 && draft.changed && p.problems}
          {p.children}
        </div>
      </FieldProblems>
      {may && <DraftBar draft={draft} onReview={() => setReviewing(true)} within={p.at} />}
      {reviewing && (
        <ReviewSheet
          {...p.review}
          draft={draft}
          onDone={() => {
            setReviewing(false);
            void queryClient.invalidateQueries({ queryKey: p.queries.object });
            void queryClient.invalidateQueries({ queryKey: p.queries.list });
          }}
          onClose={() => setReviewing(false)}
        />
      )}
      {deleting && (
        <Confirm
          title={removal.title}
          name={p.name}
          verb={removal.verb}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await removal.run();
            draft.discard();
            await queryClient.invalidateQueries({ queryKey: p.queries.list });
            toast({ kind: 'ok', text: `${removal.verb}: ${p.name}` });
            setTimeout(() => void navigate({ to: p.list })); // the draft's guard lets go first
          }}
        >
          {removal.goesWith}
        </Confirm>
      )}
    </Page>
  );
}
