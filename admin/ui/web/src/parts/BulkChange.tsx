import { useState, type ReactNode } from 'react';
import type { components } from '../api.gen';
import { Failure, request, useRead } from '../api';
import { watchRevision } from '../app/pulse';
import { randomID, useSettled } from '../lib';
import { t } from '../text/en';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { ErrorPanel } from './ErrorPanel';
import { TextField } from './fields';
import css from './draft/ReviewSheet.module.css';
import { Loaded } from './Loaded';
import { toast } from './toasts';

const pause = 400; // milliseconds without a key before the server is asked for the effect

type Effect = components['schemas']['Effect'];

interface Chosen {
  id: string;
  name: string;
}

export interface BulkChangeProps {
  kind: 'apis' | 'policies';
  rows: Chosen[];
  /** Enable 3 APIs */
  title: string;
  verb: string;
  danger?: boolean;
  /** Has to be typed first. */
  name?: string;
  /** Reads the text of an object. */
  load: (id: string, signal: AbortSignal) => Promise<string>;
  /** What becomes of a text; undefined: the objects are deleted. */
  edit?: (text: string) => string;
  effect: (effect: Effect) => ReactNode;
  /** Drawn first: what is needed for the edit. */
  children?: ReactNode;
  /** Whether the edit is complete. */
  ready?: boolean;
  onDone: () => void;
  onClose: () => void;
}

/**
 * A change of several objects in one transaction: what it comes to, a reason, and one
 * revision. Where one of them is refused, none changes.
 */
export function BulkChange(p: BulkChangeProps) {
  const ids = p.rows.map((row) => row.id);
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [once, setOnce] = useState(randomID);
  const texts = useRead(['bulk', p.kind, ids], (signal) => (p.edit ? readAll(ids, p.load, signal) : Promise.resolve([])), { staleTime: 0, on: ['revision'] });
  const batch = texts.data && (p.ready ?? true) ? members(p, ids, texts.data) : undefined;
  const asked = useSettled(batch, pause);
  const effect = useRead(['bulk', 'effect', asked], (signal) => request<Effect>('POST', '/api/config/effect', { body: `{${asked}}`, signal }), { enabled: asked !== undefined, staleTime: 0 });
  const ready = !busy && batch !== undefined && asked === batch && effect.data !== undefined && (!p.name || typed.trim() === p.name);
  const change = async () => {
    if (!ready || !effect.data) return;
    setBusy(true);
    setFailure(undefined);
    try {
      // What was reviewed is what changes: another revision in between is refused.
      const body = `{"expect_revision":${effect.data.base_revision},"reason":${JSON.stringify(reason.trim())},${batch}}`;
      const made = await request<{ revision: number }>('POST', '/api/config/apply', { body, once });
      watchRevision(made.revision);
      toast({ kind: 'ok', name: 'published', text: `${p.title}: ${t.review.done(made.revision)}` });
      p.onDone();
    } catch (cause) {
      setFailure(cause);
      setBusy(false);
      if (!(cause instanceof Failure) || cause.status !== 0) setOnce(randomID());
      if (cause instanceof Failure && cause.status === 409) void texts.refetch().then(() => effect.refetch());
    }
  };
  return (
    <Dialog
      wide
      title={p.title}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind={p.danger ? 'dangerPrimary' : 'primary'} disabled={!ready} busy={busy} onClick={() => void change()}>
            {p.verb}
          </Button>
        </>
      }
    >
      <ul>
        {p.rows.slice(0, 10).map((row) => (
          <li key={row.id}>{row.name}</li>
        ))}
        {p.rows.length > 10 && <li className="muted">{t.bulk.more(p.rows.length - 10)}</li>}
      </ul>
      {p.children}
      <section className={css.section} aria-busy={batch !== undefined && (asked !== batch || !effect.data)}>
        <h3>{t.review.effect}</h3>
        {texts.isError ? <ErrorPanel failure={texts.error} retry={() => void texts.refetch()} /> : batch !== undefined && asked !== undefined && <Loaded query={effect} lines={2}>{(found) => ((found.objects ?? []).length === 0 ? <p>{t.bulk.same}</p> : p.effect(found))}</Loaded>}
      </section>
      <TextField label={t.review.reason} help={t.review.reasonHelp} value={reason} onChange={setReason} maxLength={500} />
      {p.name && <TextField label={t.confirm.type(p.name)} value={typed} onChange={setTyped} autoComplete="off" />}
      {failure !== undefined && <ErrorPanel failure={failure} />}
    </Dialog>
  );
}

/** The members of a batch, as JSON. Texts go into it as they are. */
function members(p: BulkChangeProps, ids: string[], texts: string[]): string {
  return p.edit ? `"${p.kind}":[${texts.map(p.edit).join(',')}]` : `"delete":${JSON.stringify({ [p.kind]: ids })}`;
}

/** Reads several texts, a few at a time. */
async function readAll(ids: string[], load: BulkChangeProps['load'], signal: AbortSignal): Promise<string[]> {
  const texts: string[] = new Array<string>(ids.length);
  let next = 0;
  const work = async () => {
    for (let at = next++; at < ids.length; at = next++) texts[at] = await load(ids[at]!, signal);
  };
  await Promise.all([work(), work(), work(), work()]);
  return texts;
}

/** Saves objects as a file that `sluice apply` and POST /api/config/apply take. */
export async function exportObjects(kind: 'apis' | 'policies', rows: Chosen[], load: BulkChangeProps['load']): Promise<void> {
  try {
    const texts = await readAll(rows.map((row) => row.id), load, new AbortController().signal);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([`{"${kind}": [\n${texts.join(',\n')}\n]}\n`], { type: 'application/json' }));
    link.download = `${kind}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  } catch (cause) {
    toast({ kind: 'danger', text: cause instanceof Error ? cause.message : String(cause) });
  }
}
