import { useRef, useState, type ReactNode } from 'react';
import { t } from '../text/en';
import { Badge } from './Badge';
import css from './BulkRun.module.css';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { TextField } from './fields';

interface Result {
  state: 'waiting' | 'running' | 'good' | 'already' | 'failed' | 'skipped';
  why?: string;
}

const atOnce = 4;

/**
 * Changes several objects by a call for each: what was asked, how far it is, and what became
 * of each. What failed can be tried again.
 */
export function BulkRun<R>(p: {
  title: string;
  verb: string;
  danger?: boolean;
  /** Has to be typed first. */
  word?: string;
  rows: R[];
  name: (row: R) => string;
  /** Changes one; false: nothing was to be changed. */
  run: (row: R) => Promise<unknown>;
  /** What is needed for the change; drawn until it begins. */
  children?: ReactNode;
  /** Whether that is complete. */
  ready?: boolean;
  /** Closed; some may have been changed. */
  onClose: (changed: boolean) => void;
}) {
  const [results, setResults] = useState<Result[]>(() => p.rows.map(() => ({ state: 'waiting' })));
  const [phase, setPhase] = useState<'ask' | 'run' | 'done'>('ask');
  const [typed, setTyped] = useState('');
  const stopped = useRef(false);
  const ready = (p.ready ?? true) && (!p.word || typed.trim() === p.word);
  const start = async (of: number[]) => {
    stopped.current = false;
    setPhase('run');
    const put = (at: number, result: Result) => setResults((all) => all.with(at, result));
    const queue = [...of];
    const work = async () => {
      for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
        if (stopped.current) {
          put(at, { state: 'skipped' });
          continue;
        }
        put(at, { state: 'running' });
        try {
          put(at, { state: (await p.run(p.rows[at]!)) === false ? 'already' : 'good' });
        } catch (cause) {
          put(at, { state: 'failed', why: cause instanceof Error ? cause.message : String(cause) });
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    setPhase('done');
  };
  const at = (...states: Result['state'][]) => results.flatMap((one, index) => (states.includes(one.state) ? [index] : []));
  const left = at('failed', 'skipped');
  const ended = at('good', 'already').length;
  const close = () => p.onClose(phase !== 'ask');
  return (
    <Dialog
      title={p.title}
      firm={phase === 'run'}
      onClose={close}
      actions={
        phase === 'ask' ? (
          <>
            <Button onClick={close}>{t.cancel}</Button>
            <Button kind={p.danger ? 'dangerPrimary' : 'primary'} disabled={!ready} onClick={() => void start(at('waiting'))}>
              {p.verb}
            </Button>
          </>
        ) : phase === 'run' ? (
          <Button onClick={() => (stopped.current = true)}>{t.bulk.stop}</Button>
        ) : (
          <>
            {left.length > 0 && <Button onClick={() => void start(left)}>{t.bulk.again}</Button>}
            <Button kind="primary" onClick={close}>
              {t.close}
            </Button>
          </>
        )
      }
    >
      {phase === 'ask' && p.children}
      {phase === 'ask' && p.word && <TextField label={t.confirm.type(p.word)} value={typed} onChange={setTyped} autoComplete="off" />}
      {phase !== 'ask' && <progress className={css.progress} max={p.rows.length} value={p.rows.length - at('waiting', 'running').length} aria-label={t.bulk.results} />}
      <p role="status" className="muted">
        {phase === 'ask' ? '' : t.bulk.progress(ended, p.rows.length)}
      </p>
      <div className={css.results} tabIndex={0} role="group" aria-label={t.bulk.results}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t.bulk.thing}</th>
              <th scope="col">{t.bulk.result}</th>
            </tr>
          </thead>
          <tbody>
            {p.rows.map((row, index) => (
              <tr key={index}>
                <td>{p.name(row)}</td>
                <td>
                  <Shown result={results[index]!} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Dialog>
  );
}

function Shown({ result: { state, why } }: { result: Result }) {
  if (state === 'good') return <Badge kind="ok">{t.bulk.good}</Badge>;
  if (state === 'failed') return <Badge kind="danger">{why}</Badge>;
  return <span className="muted">{t.bulk[state]}</span>;
}
