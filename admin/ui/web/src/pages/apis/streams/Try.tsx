// Trying a stream: its processors step by step, and a message through a gateway.
import { useEffect, useRef, useState } from 'react';
import { request, respond, useWrite, type components } from '../../../api';
import { useCan } from '../../../app/session';
import { Badge } from '../../../parts/Badge';
import { Button } from '../../../parts/Button';
import type { Draft } from '../../../parts/draft';
import { ErrorPanel } from '../../../parts/ErrorPanel';
import { SelectField, SwitchField, TextAreaField, TextField } from '../../../parts/fields';
import { Link } from '../../../parts/Link';
import { cx } from '../../../lib';
import { eventsOf, isEventStream } from '../../../playground/events';
import { answerOf, type Sent } from '../../../playground/relay';
import { metadataOf, routesOf } from './graph';
import { text as t } from './text';
import css from './streams.module.css';

type Tried = components['schemas']['Tried'];
type Message = components['schemas']['TriedMessage'];

export function Try({ id, name, draft }: { id: string; name: string; draft: Draft }) {
  const [message, setMessage] = useState('{\n  "hello": "world"\n}');
  return (
    <div className={css.try}>
      <Trial id={id} name={name} draft={draft} message={message} setMessage={setMessage} />
      <Watch id={id} name={name} draft={draft} message={message} />
    </div>
  );
}

/** Runs the processors of the draft. */
function Trial({ id, name, draft, message, setMessage }: { id: string; name: string; draft: Draft; message: string; setMessage: (text: string) => void }) {
  const may = useCan('editor');
  const [metadata, setMetadata] = useState('');
  const [calls, setCalls] = useState(false);
  const run = useWrite(() =>
    request<Tried>('POST', `/api/apis/streams/${encodeURIComponent(id)}/try`, {
      body: { stream: name, body: message, metadata: metadataOf(metadata), calls, 'x-svc-streaming': draft.changed ? draft.get('x-svc-streaming') : undefined },
    }),
  );
  return (
    <section className={css.part} aria-label={t.trial.title}>
      <h3>{t.trial.title}</h3>
      <p className="muted">{t.trial.help}</p>
      <TextAreaField label={t.trial.message} code rows={5} value={message} onChange={setMessage} />
      <TextAreaField label={t.trial.metadata} help={t.trial.metadataHelp} code rows={2} value={metadata} onChange={setMetadata} />
      <SwitchField label={t.trial.calls} help={t.trial.callsHelp} value={calls} onChange={setCalls} />
      <div>
        <Button kind="primary" busy={run.isPending} disabled={!may || draft.broken} onClick={() => run.mutate(undefined)}>
          {t.trial.run}
        </Button>
      </div>
      {run.error && <ErrorPanel failure={run.error} />}
      {run.data && <Steps of={run.data} />}
    </section>
  );
}

function Steps({ of }: { of: Tried }) {
  return (
    <div className={css.part} role="status">
      {of.error && (
        <p>
          <Badge kind="danger">{t.trial.error}</Badge> {of.error}
        </p>
      )}
      {of.steps.length === 0 && <p className="muted">{t.trial.none}</p>}
      <ol className={css.steps} aria-label={t.trial.steps}>
        {of.steps.map((step, n) => (
          <li key={n} style={{ marginInlineStart: `calc(${step.depth} * var(--s5))` }}>
            <span className={css.head}>
              <strong>{step.kind}</strong> <code>{step.label}</code>
              {step.error ? (
                <Badge kind="danger">{t.trial.refused}</Badge>
              ) : step.filtered ? (
                <Badge kind="warn">{t.trial.filtered}</Badge>
              ) : step.skipped ? (
                <Badge kind="info">{t.trial.skipped}</Badge>
              ) : (
                <Badge kind="ok">{t.trial.done}</Badge>
              )}
              <span className="muted">{t.trial.took(step.seconds)}</span>
            </span>
            {step.error ? <p>{step.error}</p> : <Shown of={step} label={t.trial.step(n + 1)} />}
          </li>
        ))}
      </ol>
      <Messages title={t.trial.outputs} of={of.outputs} none={of.error ? undefined : t.trial.noOutputs} />
      <Messages title={t.trial.dead} of={of.dead_letters} />
      <Messages title={t.trial.reply} of={of.reply ? [of.reply] : []} />
      {of.cut && <p className="muted">{t.trial.cut}</p>}
    </div>
  );
}

function Messages({ title, of, none }: { title: string; of: Message[]; none?: string }) {
  if (of.length === 0) return none ? <p className="muted">{none}</p> : null;
  return (
    <div>
      <h4>{title}</h4>
      <ol className={css.steps}>
        {of.map((one, n) => (
          <li key={n}>
            {one.reason && <p>{one.reason}</p>}
            <Shown of={one} label={`${title} ${n + 1}`} />
          </li>
        ))}
      </ol>
    </div>
  );
}

/** A body with its metadata. */
function Shown({ of, label }: { of: Message; label: string }) {
  const metadata = Object.entries(of.metadata);
  return (
    <>
      <pre className={css.body} tabIndex={0} aria-label={label}>
        {of.body_base64 ? `(${t.trial.binary}) ${of.body_base64}` : of.body}
        {of.cut && ' …'}
      </pre>
      {metadata.length > 0 && (
        <p className={css.meta}>
          {metadata.map(([name, value]) => (
            <code key={name}>
              {name}: {value}
            </code>
          ))}
        </p>
      )}
    </>
  );
}

type As = { me: true } | { key_hash: string } | { policy: string };
interface Came {
  at: number;
  event: string;
  data: string;
}

const mostEvents = 200;

/** Sends a message through a gateway, and watches what comes out. */
function Watch({ id, name, draft, message }: { id: string; name: string; draft: Draft; message: string }) {
  const may = useCan('editor');
  const routes = routesOf(draft.get(['x-svc-streaming', 'streams', name]));
  const [kind, setKind] = useState('me');
  const [who, setWho] = useState('');
  const [input, setInput] = useState('');
  const [output, setOutput] = useState('');
  const post = routes.post.find((one) => one.path === input) ?? routes.post[0];
  const from = routes.events.includes(output) ? output : routes.events[0];
  const as: As = kind === 'key' ? { key_hash: who } : kind === 'policy' ? { policy: who } : { me: true };
  const play = `/api/apis/${encodeURIComponent(id)}/playground`;
  const send = useWrite(() => request<Sent>('POST', play, { body: { as, method: post!.verb, path: post!.path, body: message } }));
  const watching = useWatching(play);
  const answer = send.data;
  return (
    <section className={css.part} aria-label={t.watch.title}>
      <h3>{t.watch.title}</h3>
      <p className="muted">{draft.changed ? t.watch.unsaved : t.watch.help}</p>
      {!post && !from ? (
        <p>{t.watch.noRoutes}</p>
      ) : (
        <>
          <div className={css.row}>
            <SelectField
              label={t.watch.as}
              value={kind}
              disabled={!may}
              help={kind === 'me' ? t.watch.meHelp : undefined}
              onChange={setKind}
              options={[
                { value: 'me', label: t.watch.me },
                { value: 'key', label: t.watch.key },
                { value: 'policy', label: t.watch.policy },
              ]}
            />
            {kind !== 'me' && <TextField label={kind === 'key' ? t.watch.hash : t.watch.policyID} code value={who} onChange={(next) => setWho(next.trim())} />}
          </div>
          {from && (
            <div className={css.row}>
              <SelectField label={t.watch.output} value={from} onChange={setOutput} options={routes.events.map((one) => ({ value: one, label: one }))} />
              {watching.open ? (
                <Button onClick={watching.stop}>{t.watch.stop}</Button>
              ) : (
                <Button onClick={() => watching.start({ as, method: 'GET', path: from, stream: true })}>{t.watch.start}</Button>
              )}
            </div>
          )}
          {post && (
            <div className={css.row}>
              <SelectField label={t.watch.input} value={post.path} onChange={setInput} options={routes.post.map((one) => ({ value: one.path, label: `${one.verb} ${one.path}` }))} />
              <Button kind="primary" busy={send.isPending} onClick={() => send.mutate(undefined)}>
                {t.watch.send}
              </Button>
            </div>
          )}
          <div role="status">
            {answer && (
              <>
                <p>
                  <Badge kind={answer.status < 400 && answer.sent ? 'ok' : 'danger'}>{t.watch.answer(answer.status, answer.took_ms)}</Badge>{' '}
                  {answer.request_id && answer.status >= 400 && <Link to={`/why/${encodeURIComponent(answer.request_id)}`}>{t.watch.why}</Link>}
                </p>
                {answer.body && (
                  <pre className={css.body} tabIndex={0} aria-label={t.watch.send}>
                    {answer.body}
                  </pre>
                )}
              </>
            )}
          </div>
          {send.error && <ErrorPanel failure={send.error} />}
          {from && <Events of={watching} />}
        </>
      )}
    </section>
  );
}

function Events({ of }: { of: Watching }) {
  return (
    <div className={css.part}>
      <h4>{t.watch.events}</h4>
      <p role="status">
        {of.open ? <Badge kind="ok">{t.watch.open}</Badge> : of.ended && t.watch.ended(of.ended)}
      </p>
      {of.failure !== undefined && <ErrorPanel failure={of.failure} />}
      {of.open && of.came.length === 0 && <p className="muted">{t.watch.nothing}</p>}
      <ol className={cx(css.steps, css.events)} aria-label={t.watch.events} aria-live="polite">
        {of.came.map((one) => (
          <li key={one.at}>
            {one.event && <code>{one.event}</code>}
            <pre className={css.body}>{one.data}</pre>
          </li>
        ))}
      </ol>
    </div>
  );
}

interface Watching {
  open: boolean;
  came: Came[];
  ended: string;
  failure?: unknown;
  start: (call: unknown) => void;
  stop: () => void;
}

/** Follows what comes out of a stream, newest first, until it is stopped or the page is left. */
function useWatching(play: string): Watching {
  const [open, setOpen] = useState(false);
  const [came, setCame] = useState<Came[]>([]);
  const [ended, setEnded] = useState('');
  const [failure, setFailure] = useState<unknown>();
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const follow = async (call: unknown, signal: AbortSignal) => {
    const answer = await respond('POST', play, { body: call, signal });
    if (!isEventStream(answer)) {
      const got = answerOf((await answer.json()) as Sent);
      setEnded(`${got.status} ${got.body || got.explanation?.outcome.reason || ''}`);
      return;
    }
    let n = 0;
    for await (const { name, data } of eventsOf(answer.body!)) {
      if (name === 'open') setOpen(true);
      if (name === 'next') {
        const one = JSON.parse(data) as { event: string; data: string };
        const at = ++n;
        setCame((before) => [{ at, ...one }, ...before].slice(0, mostEvents));
      }
      if (name === 'complete') setEnded(t.watch.completed);
      if (name === 'error') setEnded(data);
      if (name === 'closed') setEnded((JSON.parse(data) as { reason: string }).reason);
    }
  };
  return {
    open,
    came,
    ended,
    failure,
    start: (call) => {
      abort.current?.abort();
      const own = new AbortController();
      abort.current = own;
      setFailure(undefined);
      setEnded('');
      setCame([]);
      follow(call, own.signal)
        .catch((cause: unknown) => !own.signal.aborted && setFailure(cause))
        .finally(() => abort.current === own && setOpen(false));
    },
    stop: () => {
      abort.current?.abort();
      setOpen(false);
    },
  };
}
