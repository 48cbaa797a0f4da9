import { useRef, useState } from 'react';
import { request } from '../../api';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { TextAreaField } from '../../parts/fields';
import { SecretSheet } from '../../parts/SecretSheet';
import { t } from '../../text/en';
import { linesOf, one, policiesOf, wasLost, type Credential, type KeyRequest } from '../portal/model';
import { whoOf } from '.';
import { InLetter } from './Issued';
import css from './requests.module.css';
import { text } from './text';

type State = 'waiting' | 'running' | 'good' | 'failed' | 'skipped';
interface Result {
  state: State;
  why?: string;
  credential?: Credential;
}

/** Decides on several requests, one after the other, and shows what became of each. */
export function Bulk(p: { verb: 'approve' | 'decline'; rows: KeyRequest[]; nameOf: (id: string) => string; onClose: () => void }) {
  const [results, setResults] = useState<Result[]>(() => p.rows.map(() => ({ state: 'waiting' })));
  const [phase, setPhase] = useState<'ask' | 'run' | 'done'>('ask');
  const [reason, setReason] = useState('');
  const stopped = useRef(false);
  const decide = (row: KeyRequest) =>
    p.verb === 'approve'
      ? request<Credential>('PUT', one('requests/approve', row.id))
      : request<undefined>('PUT', one('requests/reject', row.id), { body: { reason } }).then(() => undefined);
  const run = async () => {
    setPhase('run');
    const put = (at: number, result: Result) => setResults((all) => all.with(at, result));
    for (const [at, row] of p.rows.entries()) {
      if (stopped.current) {
        put(at, { state: 'skipped' });
        continue;
      }
      put(at, { state: 'running' });
      try {
        put(at, { state: 'good', credential: await decide(row) });
      } catch (cause) {
        put(at, { state: 'failed', why: `${(cause as Error).message}${wasLost(cause) ? ` ${text.lost}` : ''}` });
      }
    }
    setPhase('done');
  };
  const title = p.verb === 'approve' ? text.bulk.approve(p.rows.length) : text.bulk.decline(p.rows.length);
  const made = results.flatMap(({ credential }, at) => (credential?.RawKey ? [`${whoOf(p.rows[at]!)}\t${linesOf(credential).replace('\n', '\t')}`] : []));
  const table = <Results {...p} results={results} />;
  if (phase === 'done' && made.length > 0) {
    return (
      <SecretSheet title={text.bulk.sheet(made.length)} secret={made.join('\n')} file="keys" onClose={p.onClose}>
        {table}
        <InLetter />
      </SecretSheet>
    );
  }
  return (
    <Dialog
      title={title}
      firm={phase === 'run'}
      onClose={p.onClose}
      actions={
        phase === 'ask' ? (
          <>
            <Button onClick={p.onClose}>{t.cancel}</Button>
            <Button kind={p.verb === 'approve' ? 'primary' : 'dangerPrimary'} onClick={() => void run()}>
              {title}
            </Button>
          </>
        ) : phase === 'run' ? (
          <Button onClick={() => (stopped.current = true)}>{text.bulk.stop}</Button>
        ) : (
          <Button kind="primary" onClick={p.onClose}>
            {t.close}
          </Button>
        )
      }
    >
      {phase === 'ask' && p.verb === 'approve' && <p>{text.bulk.approveHelp}</p>}
      {phase === 'ask' && p.verb === 'decline' && <TextAreaField label={text.reason} help={text.reasonHelp} value={reason} onChange={setReason} maxLength={2000} />}
      {table}
    </Dialog>
  );
}

function Results(p: { verb: 'approve' | 'decline'; rows: KeyRequest[]; results: Result[]; nameOf: (id: string) => string }) {
  const ended = p.results.filter((one) => one.state === 'good').length;
  return (
    <>
      <p role="status" className="muted">
        {text.bulk.done(ended, p.rows.length)}
      </p>
      <div className={css.results} tabIndex={0} role="group" aria-label={text.bulk.columns.result}>
        <table>
          <thead>
            <tr>
              <th scope="col">{text.bulk.columns.who}</th>
              <th scope="col">{text.bulk.columns.plan}</th>
              <th scope="col">{text.bulk.columns.result}</th>
            </tr>
          </thead>
          <tbody>
            {p.rows.map((row, at) => (
              <tr key={row.id}>
                <td>{whoOf(row)}</td>
                <td>{policiesOf(row).map(p.nameOf).join(', ')}</td>
                <td>
                  <ResultShown verb={p.verb} result={p.results[at]!} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function ResultShown({ verb, result }: { verb: 'approve' | 'decline'; result: Result }) {
  switch (result.state) {
    case 'good':
      return <Badge kind="ok">{verb === 'approve' ? text.bulk.approved : text.bulk.declined}</Badge>;
    case 'failed':
      return <Badge kind="danger">{result.why}</Badge>;
    default:
      return <span className="muted">{text.bulk[result.state]}</span>;
  }
}
