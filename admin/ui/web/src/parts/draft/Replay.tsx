import { useEffect, useRef, useState } from 'react';
import { request } from '../../api/client';
import { useRead } from '../../api/query';
import type { components } from '../../api.gen';
import { cx } from '../../lib';
import { number, plural, t } from '../../text/en';
import { Button } from '../Button';
import { Link } from '../Link';
import { Loaded } from '../Loaded';
import { Time } from '../Time';
import css from './ReviewSheet.module.css';

type Schemas = components['schemas'];
type Report = Schemas['ReplayReport'];
type Turned = Schemas['Turned'];

const pause = 400; // milliseconds between two looks at a run

/** Runs recorded requests against a change: what it would refuse or let pass. `as` is a policy that callers have alone then. */
export function Replay({ batch, as }: { batch: string; as?: string }) {
  const recorded = useSamples();
  return (
    <section className={css.section}>
      <h3>{t.replay.title}</h3>
      <Loaded query={recorded} lines={2}>
        {(all) =>
          all.samples === 0 ? (
            <p className="muted">{t.replay.none}</p>
          ) : (
            <>
              <Recorded of={all} />
              {as !== undefined && <p>{t.replay.asNew}</p>}
              <ReplayRun key={batch} batch={batch} query={() => ({ as_policy: as })} />
            </>
          )
        }
      </Loaded>
    </section>
  );
}

/** What is recorded. */
export const useSamples = () => useRead(['samples'], (signal) => request<Schemas['Samples']>('GET', '/api/samples', { signal }));

/** How many requests are recorded, and when they came. */
export function Recorded({ of }: { of: { samples: number; first_at?: string; last_at?: string } }) {
  return (
    <p>
      {t.replay.recorded(plural(of.samples, 'request', 'requests'))} <Time at={of.first_at} as="full" /> – <Time at={of.last_at} as="full" />
    </p>
  );
}

/** The button that starts a run, and what came of it. */
export function ReplayRun({ batch, query, disabled }: { batch: string; query: () => Record<string, string | undefined>; disabled?: boolean }) {
  const [report, setReport] = useState<Report>();
  const [failure, setFailure] = useState('');
  const stop = useRef(new AbortController());
  useEffect(() => {
    const own = new AbortController();
    stop.current = own;
    return () => own.abort();
  }, []);
  const run = async () => {
    const { signal } = stop.current;
    setFailure('');
    setReport(undefined);
    try {
      let now = await request<Report>('POST', '/api/config/replay', { body: batch, query: query(), signal });
      while (now.state === 'running' && !signal.aborted) {
        setReport(now);
        await new Promise((done) => setTimeout(done, pause));
        now = await request<Report>('GET', `/api/config/replay/${encodeURIComponent(now.id)}`, { signal });
      }
      setReport(now);
    } catch (cause) {
      if (!signal.aborted) {
        setReport(undefined);
        setFailure(cause instanceof Error ? cause.message : String(cause));
      }
    }
  };
  const busy = report?.state === 'running';
  return (
    <>
      <div>
        <Button busy={busy} disabled={disabled} onClick={() => void run()}>
          {report?.result ? t.replay.again : t.replay.run}
        </Button>
      </div>
      {busy && <progress aria-label={t.replay.progress} max={report.total} value={report.done} />}
      <div role="status" className={css.section}>
        {busy && t.replay.done(number(report.done), number(report.total))}
        {failure && <p>{failure}</p>}
        {report?.state === 'failed' && <p>{t.replay.failed(report.fault ?? '')}</p>}
        {report?.result && <p>{report.result.summary}</p>}
      </div>
      {report?.result && <Result of={report.result} />}
    </>
  );
}

function Result({ of }: { of: Schemas['Result'] }) {
  return (
    <>
      <Tables of={of.newly_refused} refused />
      <Tables of={of.newly_allowed} />
      <ul className="muted">
        {of.refused_since > 0 && <li>{t.replay.since(number(of.refused_since))}</li>}
        {(of.not_compared ?? []).map((one) => (
          <li key={one.why}>{t.replay.skipped(number(one.samples), one.why)}</li>
        ))}
        {(of.not_part ?? []).map((one) => (
          <li key={one}>{t.replay.left(one)}</li>
        ))}
      </ul>
    </>
  );
}

function Tables({ of, refused }: { of: Turned; refused?: boolean }) {
  if (of.samples === 0) return null;
  const what = refused ? t.replay.refused : t.replay.allowed;
  const keys = of.keys ?? [];
  return (
    <>
      <div className={css.scroll} tabIndex={0} role="group" aria-label={`${what}: ${t.replay.byRule}`}>
        <table className={cx(css.table, css.wide)}>
          <caption>{`${what}: ${t.replay.byRule}`}</caption>
          <thead>
            <tr>
              <th scope="col">{t.replay.reason}</th>
              <th scope="col">{t.replay.rule}</th>
              <th scope="col">{t.replay.requests}</th>
              <th scope="col">{t.replay.examples}</th>
            </tr>
          </thead>
          <tbody>
            {(of.rules ?? []).map((rule, n) => (
              <tr key={n}>
                <td>
                  <code>{rule.reason}</code>
                </td>
                <td>
                  {rule.rule && (
                    <code>
                      {rule.rule} {rule.value}
                    </code>
                  )}{' '}
                  {rule.from && t.replay.in(rule.from)}
                </td>
                <td>{number(rule.samples)}</td>
                <td>
                  {(rule.examples ?? []).slice(0, 2).map((one) => (
                    <div key={one.id}>
                      <code>{`${one.method} ${one.url}`}</code> {[one.operation, one.seen].filter(Boolean).join(', ')}
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className={css.scroll} tabIndex={0} role="group" aria-label={`${what}: ${t.replay.byKey}`}>
        <table className={css.table}>
          <caption>{`${what}: ${t.replay.byKey}`}</caption>
          <thead>
            <tr>
              <th scope="col">{t.replay.key}</th>
              <th scope="col">{t.replay.requests}</th>
            </tr>
          </thead>
          <tbody>
            {keys.map((one) => (
              <tr key={one.key_hash}>
                <td>{one.key_hash ? <Link to={`/keys/${encodeURIComponent(one.key_hash)}`}>{one.alias || one.key_hash.slice(0, 12)}</Link> : t.replay.noKey}</td>
                <td>{number(one.samples)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
