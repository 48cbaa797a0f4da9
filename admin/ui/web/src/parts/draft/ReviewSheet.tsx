import { useEffect, useState, type ReactNode } from 'react';
import { Failure } from '../../api/failure';
import { watchRevision } from '../../app/pulse';
import { useShortcuts } from '../../app/shortcuts';
import { randomID, same } from '../../lib';
import { t } from '../../text/en';
import { Button } from '../Button';
import { Dialog } from '../Dialog';
import { ErrorPanel } from '../ErrorPanel';
import { TextField } from '../fields';
import { Skeleton } from '../Skeleton';
import { toast } from '../toasts';
import { changes, copyAt, merge, parse, pathText, valueOf, type Change, type Merged } from './merge';
import { Replay } from './Replay';
import css from './ReviewSheet.module.css';
import type { Base, Draft } from './useDraft';

export interface Publishing {
  text: string;
  reason: string;
  /** For If-Match. */
  etag: string;
  /** For expect_revision. */
  revision?: number;
  /** The Idempotency-Key: the same for every try of this sheet. */
  once: string;
}

/**
 * The only way configuration is written: the difference in effect and in text, a reason,
 * and Publish. A conflict is merged: what does not overlap is taken over and named, the
 * rest asks.
 */
export function ReviewSheet(p: {
  /** policy "gold" */
  what: string;
  draft: Draft;
  /** What the change comes to, in words; read when the sheet opens. */
  effect?: (text: string, signal: AbortSignal) => Promise<ReactNode>;
  /** The change as POST /api/config/replay takes it, to be run against recorded requests. */
  batch?: (text: string) => string;
  /** Of a new policy, its id in that batch: callers have it alone in the run, as no key has it yet. */
  replayAs?: string;
  publish: (it: Publishing) => Promise<{ revision?: number } | void>;
  /** The object as it is now; called after a conflict. */
  reload: () => Promise<Base>;
  onDone: (result: { revision?: number }) => void;
  onClose: () => void;
  /** Drawn between the differences and the reason. */
  children?: ReactNode;
}) {
  const { draft } = p;
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [merged, setMerged] = useState<{ with: Base; mine: string; result: Merged; choice: Record<string, 'mine' | 'theirs'> }>();
  const [once, setOnce] = useState(randomID);
  const undecided = merged?.result.conflicts.some((one) => !merged.choice[pathText(one.path)]) ?? false;
  // What is published, and what it replaces: after a conflict, theirs with what is mine.
  const base = merged?.with ?? draft.base;
  const text = merged
    ? merged.result.conflicts.reduce((now, one) => (merged.choice[pathText(one.path)] === 'mine' ? copyAt(now, merged.mine, one.path) : now), merged.result.text)
    : draft.text;
  const differences = merged ? differencesOf(base.text, text) : draft.changes;
  const ready = !busy && !undecided && (differences.length > 0 || merged !== undefined) && !draft.broken;

  const done = (now: Base, said: string, result: { revision?: number }) => {
    draft.rebase(now);
    toast({ kind: 'ok', name: 'published', text: said });
    p.onDone(result);
  };
  /** Merges what is on the server now; throws the cause where nobody else has changed the object. */
  const conflict = async (cause: unknown) => {
    const now = await p.reload();
    if (now.etag === base.etag) throw cause; // of another kind: a name or a path that is taken
    if (differencesOf(now.text, text).length === 0) return done(now, t.review.there, {}); // an answer was lost
    setMerged({ with: now, mine: text, result: merge(base.text, text, now.text), choice: {} });
    setOnce(randomID());
  };
  const publish = async () => {
    if (!ready) return;
    if (differences.length === 0) return done(base, t.review.there, {});
    setBusy(true);
    setFailure(undefined);
    try {
      const result = (await p.publish({ text, reason: reason.trim(), etag: base.etag, revision: base.revision, once })) ?? {};
      const { revision } = result;
      // The next change is one of what was published: with its version, and as the server writes it.
      done(await p.reload().catch(() => ({ ...base, text })), revision ? t.review.done(revision) : t.review.saved, result);
      if (revision) watchRevision(revision, (ready, all) => toast({ kind: ready < all ? 'warn' : 'ok', name: 'published', text: `${t.review.done(revision)} ${t.review.arrived(ready, all)}` }));
    } catch (cause) {
      if (cause instanceof Failure && cause.status === 409) await conflict(cause).catch(setFailure);
      else setFailure(cause);
      setBusy(false);
    }
  };
  useShortcuts([{ keys: 'Mod+Enter', label: t.review.publish, run: () => void publish() }]);

  return (
    <Dialog
      wide
      title={t.review.title(p.what)}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.back}</Button>
          <Button kind="primary" busy={busy} disabled={!ready} onClick={() => void publish()}>
            {busy ? t.review.publishing : t.review.publish}
          </Button>
        </>
      }
    >
      {merged && <Conflicts merged={merged.result} choice={merged.choice} onChoice={(path, side) => setMerged({ ...merged, choice: { ...merged.choice, [path]: side } })} />}
      {p.effect && !undecided && <Effect text={text} effect={p.effect} />}
      {(!undecided || differences.length > 0) && (
        <section className={css.section}>
          <h3>{t.review.text}</h3>
          <Differences changes={differences} />
        </section>
      )}
      {p.batch && !undecided && differences.length > 0 && <Replay batch={p.batch(text)} as={p.replayAs} />}
      {p.children}
      <TextField label={t.review.reason} help={t.review.reasonHelp} value={reason} onChange={setReason} maxLength={500} />
      {failure !== undefined && <ErrorPanel failure={failure} onProblem={() => p.onClose()} />}
    </Dialog>
  );
}

const differencesOf = (before: string, after: string) => changes(valueOf(parse(before).tree, before) ?? {}, valueOf(parse(after).tree, after) ?? {});

function Effect({ text, effect }: { text: string; effect: (text: string, signal: AbortSignal) => Promise<ReactNode> }) {
  const [shown, setShown] = useState<{ node?: ReactNode; failure?: unknown }>();
  useEffect(() => {
    const stop = new AbortController();
    setShown(undefined);
    effect(text, stop.signal)
      .then((node) => setShown({ node }))
      .catch((failure: unknown) => !stop.signal.aborted && setShown({ failure }));
    return () => stop.abort();
  }, [text]);
  return (
    <section className={css.section} aria-busy={!shown}>
      <h3>{t.review.effect}</h3>
      {!shown && <Skeleton lines={2} />}
      {shown?.node}
      {shown?.failure !== undefined && (
        <p className="muted">
          {t.review.effectFailed} {shown.failure instanceof Error ? shown.failure.message : String(shown.failure)}
        </p>
      )}
    </section>
  );
}

/** A value in the table: short ones whole, long ones cut. */
function show(value: unknown): ReactNode {
  if (value === undefined) return <span className="muted">{t.review.absent}</span>;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return <code>{text.length > 400 ? `${text.slice(0, 400)}…` : text || '""'}</code>;
}

/** Differences as a table: member, before, after. */
export function Differences({ changes }: { changes: Change[] }) {
  if (changes.length === 0) return <p className="muted">{t.review.none}</p>;
  return (
    <div className={css.scroll}>
      <table className={css.table} aria-label={t.review.text}>
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {changes.slice(0, 200).map((change) => (
            <tr key={pathText(change.path)}>
              <td>
                <code>{pathText(change.path) || '(all)'}</code>
              </td>
              <td className={css.before}>{show(change.before)}</td>
              <td className={css.after}>{show(change.after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What both have changed, with a choice for each. */
export function Conflicts({ merged, choice, onChoice }: { merged: Merged; choice: Record<string, 'mine' | 'theirs'>; onChoice: (path: string, side: 'mine' | 'theirs') => void }) {
  return (
    <section className={css.section} role="alert">
      <h3>{t.review.conflict}</h3>
      {merged.taken.length > 0 && (
        <>
          <p>{t.review.merged}</p>
          <Differences changes={merged.taken} />
        </>
      )}
      {merged.conflicts.length > 0 && <p>{t.review.ask}</p>}
      {merged.conflicts.map((one) => {
        const path = pathText(one.path);
        return (
          <fieldset key={path} className={css.choice}>
            <legend>
              <code>{path}</code>, {t.review.before} {show(one.base)}
            </legend>
            {(['mine', 'theirs'] as const).map((side) => (
              <label key={side}>
                <input type="radio" name={path} checked={same(choice[path], side)} onChange={() => onChoice(path, side)} />
                {t.review[side]}: {show(one[side])}
              </label>
            ))}
          </fieldset>
        );
      })}
    </section>
  );
}
