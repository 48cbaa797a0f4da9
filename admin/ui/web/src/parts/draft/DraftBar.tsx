import { useBlocker, useNavigate } from '@tanstack/react-router';
import { useShortcuts } from '../../app/shortcuts';
import { t } from '../../text/en';
import { Button } from '../Button';
import { firstField, goToField } from '../ErrorPanel';
import { ago } from '../Time';
import css from './DraftBar.module.css';
import type { Draft } from './useDraft';

/** Offers a draft that was found in this tab. */
export function DraftOffer({ draft }: { draft: Draft }) {
  if (draft.restored === undefined) return null;
  return (
    <div className={css.offer} role="status">
      <span>{t.draft.restored(ago(draft.restored))}</span>
      <Button dense onClick={draft.accept}>
        {t.draft.keep}
      </Button>
      <Button dense onClick={draft.discard}>
        {t.draft.discard}
      </Button>
    </div>
  );
}

/**
 * Appears when values differ: how many problems there are, and the way to the review (⌘S).
 * Leaving for a page outside `within` asks first.
 */
export function DraftBar({ draft, onReview, within }: { draft: Draft; onReview: () => void; within?: string }) {
  const navigate = useNavigate();
  useBlocker({
    shouldBlockFn: ({ next }) => draft.changed && !(within && next.pathname.startsWith(within)) && !confirm(t.draft.leave),
    enableBeforeUnload: false,
  });
  useShortcuts([
    { keys: 'Mod+s', label: t.help.keys.review, run: () => draft.changed && onReview() },
    { keys: 'e', label: t.help.keys.edit, run: () => firstField() || (within && void navigate({ to: within, search: { at: 'name' } as never })) }, // from a tab without fields
  ]);
  if (!draft.changed) return null;
  return (
    <div className={css.bar} data-bar role="group" aria-label={t.draft.changed}>
      <span role="status">
        {draft.problems.length > 0 ? (
          <Button dense kind="danger" onClick={() => goToField(draft.problems[0]!)}>
            {t.form.problems(draft.problems.length)}
          </Button>
        ) : (
          t.draft.changed
        )}
      </span>
      <span className="row">
        <Button onClick={draft.discard}>{t.draft.discard}</Button>
        <Button kind="primary" onClick={onReview} disabled={draft.broken}>
          {t.draft.review}
        </Button>
      </span>
    </div>
  );
}
