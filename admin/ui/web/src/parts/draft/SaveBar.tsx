import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { Failure, type Problem } from '../../api/failure';
import { useShortcuts } from '../../app/shortcuts';
import { t } from '../../text/en';
import { Button } from '../Button';
import { Dialog } from '../Dialog';
import { ErrorPanel, firstField, goToField } from '../ErrorPanel';
import { useFieldInAddress } from '../fieldInAddress';
import { toast } from '../toasts';
import css from './DraftBar.module.css';
import { copyAt, merge, pathText, type Merged } from './merge';
import { Conflicts } from './ReviewSheet';
import type { Base, Draft } from './useDraft';

export interface Save {
  busy: boolean;
  failure: unknown;
  /** What the server found when it was sent, for FieldProblems. */
  problems: Problem[];
  save: () => Promise<void>;
  conflict?: { with: Base; mine: string; result: Merged; choice: Record<string, 'mine' | 'theirs'> };
  choose: (path: string, side: 'mine' | 'theirs') => void;
  giveUp: () => void;
}

/**
 * Saves a draft of what is not configuration: directly, without a revision. A conflict is
 * merged: what does not overlap is taken over, the rest asks.
 */
export function useSave(p: { draft: Draft; send: (it: { text: string; etag: string }) => Promise<unknown>; reload: () => Promise<Base>; done?: () => void }): Save {
  const { draft } = p;
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [conflict, setConflict] = useState<Save['conflict']>();

  const sendAs = async (text: string, base: Base): Promise<void> => {
    try {
      await p.send({ text, etag: base.etag });
    } catch (cause) {
      if (!(cause instanceof Failure && cause.status === 409 && base.etag)) throw cause;
      const now = await p.reload();
      if (now.etag === base.etag) throw cause; // another kind of conflict: a name that is taken
      const result = merge(base.text, text, now.text);
      if (result.conflicts.length > 0) {
        setConflict({ with: now, mine: text, result, choice: {} });
        return;
      }
      await p.send({ text: result.text, etag: now.etag });
      toast({ kind: 'info', text: `${t.review.conflict} ${t.review.merged} ${result.taken.map((one) => pathText(one.path)).join(', ')}` });
    }
    draft.rebase(await p.reload());
    setConflict(undefined);
    toast({ kind: 'ok', name: 'saved', text: t.review.saved });
    p.done?.();
  };
  const save = async () => {
    const open = conflict?.result.conflicts.some((one) => !conflict.choice[pathText(one.path)]);
    if (busy || draft.broken || open) return;
    setBusy(true);
    setFailure(undefined);
    try {
      if (conflict) {
        const { result, choice, mine } = conflict;
        await sendAs(result.conflicts.reduce((now, one) => (choice[pathText(one.path)] === 'mine' ? copyAt(now, mine, one.path) : now), result.text), conflict.with);
      } else {
        await sendAs(draft.text, draft.base);
      }
    } catch (cause) {
      setFailure(cause);
      if (cause instanceof Failure && cause.problems[0]) goToField(cause.problems[0]);
    } finally {
      setBusy(false);
    }
  };
  return {
    busy,
    failure,
    problems: failure instanceof Failure ? failure.problems : [],
    save,
    conflict,
    choose: (path, side) => setConflict((now) => now && { ...now, choice: { ...now.choice, [path]: side } }),
    giveUp: () => setConflict(undefined),
  };
}

/** Appears when values differ: Save (⌘S) and what went wrong. Leaving the page asks first. */
export function SaveBar({ draft, saving, verb = t.save, always }: { draft: Draft; saving: Save; verb?: string; /** Something new can be saved as it is. */ always?: boolean }) {
  useBlocker({ shouldBlockFn: () => draft.changed && !saving.busy && !confirm(t.draft.leave), enableBeforeUnload: false });
  useFieldInAddress();
  useShortcuts([
    (draft.changed || always) && { keys: 'Mod+s', label: verb, run: () => void saving.save() },
    { keys: 'e', label: t.help.keys.edit, run: firstField },
  ]);
  const { conflict } = saving;
  const undecided = conflict?.result.conflicts.some((one) => !conflict.choice[pathText(one.path)]);
  return (
    <>
      {saving.failure !== undefined && <ErrorPanel failure={saving.failure} what={verb} />}
      {(draft.changed || always) && (
        <div className={css.bar} data-bar role="group" aria-label={t.draft.changed}>
          <span role="status">{draft.changed && t.draft.changed}</span>
          <span className="row">
            {draft.changed && <Button onClick={draft.discard}>{t.draft.discard}</Button>}
            <Button kind="primary" busy={saving.busy} disabled={draft.broken} onClick={() => void saving.save()}>
              {verb}
            </Button>
          </span>
        </div>
      )}
      {conflict && (
        <Dialog
          wide
          title={t.review.conflict}
          onClose={saving.giveUp}
          actions={
            <>
              <Button onClick={saving.giveUp}>{t.back}</Button>
              <Button kind="primary" busy={saving.busy} disabled={undecided} onClick={() => void saving.save()}>
                {verb}
              </Button>
            </>
          }
        >
          <Conflicts merged={conflict.result} choice={conflict.choice} onChoice={saving.choose} />
        </Dialog>
      )}
    </>
  );
}
