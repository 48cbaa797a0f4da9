import { useNavigate, useParams } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { Failure, request, useRead, useWrite } from '../../api';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { Card, Cards, Facts } from '../../parts/Card';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, SelectField, TextAreaField, TextField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Page } from '../../parts/Page';
import { Plan } from '../../parts/plan/Plan';
import { Time } from '../../parts/Time';
import { useURLState } from '../../parts/urlState';
import { reasons, reasonText } from '../../reasons';
import type { Refusal } from '../traffic/data';
import { Origin } from './Origin';
import { bodyDecides, decidedBy, placeOfRefusal, placesOf, type Fact, type Place } from './places';
import { text } from './text';
import css from './why.module.css';

export const pages = { '/why': Ask, '/why/$id': Why };

interface Report {
  method: string;
  path: string;
  revision: string;
  api?: { id: string; name?: string; version?: string };
  key?: { name: string; alias?: string; policies?: string[] };
  steps: { stage: string; result: string; said?: string; fix?: string; facts?: Fact[]; api?: string }[];
  outcome: { allowed: boolean; status?: number; reason?: string; stage?: string; fix?: string; body?: string };
}

interface Described {
  method: string;
  url: string;
  key_hash?: string;
  headers?: string[];
  body?: string;
  client?: string;
}

const explain = (described: Described) => request<Report>('POST', '/api/explain', { body: described });

function Ask() {
  const [url, setURL] = useURLState();
  const navigate = useNavigate();
  const [id, setID] = useState('');
  const [method, setMethod] = useState(url.method ?? 'GET');
  const [path, setPath] = useState(url.url ?? '');
  const [key, setKey] = useState(url.key_hash ?? '');
  const [headers, setHeaders] = useState(url.headers ?? '');
  const [body, setBody] = useState('');
  const [client, setClient] = useState(url.client ?? '');
  const ask = useWrite(explain);
  const problems = ask.error instanceof Failure ? ask.error.problems : [];
  const send = () => {
    setURL({ method, url: path, key_hash: key.trim(), client: client.trim() });
    ask.mutate({
      method,
      url: path,
      key_hash: key.trim() || undefined,
      headers: headers.split('\n').map((line) => line.trim()).filter(Boolean),
      body: body || undefined,
      client: client.trim() || undefined,
    });
  };
  return (
    <Page title={text.title}>
      <Cards>
        <Card title={text.lookTitle}>
          <form
            role="search"
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              if (id.trim()) void navigate({ to: `/why/${encodeURIComponent(id.trim())}` as never });
            }}
          >
            <TextField label={text.id} value={id} onChange={setID} code autoComplete="off" spellCheck={false} />
            <div className="row">
              <Button kind="primary" type="submit" disabled={!id.trim()}>
                {text.look}
              </Button>
            </div>
          </form>
        </Card>
        <Card title={text.askTitle}>
          <p className="muted">{text.askNote}</p>
          <form
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              send();
            }}
          >
            <FieldProblems problems={problems}>
              <SelectField label={text.method} value={method} onChange={setMethod} options={['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'].map((value) => ({ value, label: value }))} />
              <TextField label={text.url} help={text.urlHelp} path="url" value={path} onChange={setPath} code required />
              <TextField label={text.key} help={text.keyHelp} path="key_hash" value={key} onChange={setKey} code autoComplete="off" spellCheck={false} />
              <TextAreaField label={text.headers} help={text.headersHelp} path="headers" value={headers} onChange={setHeaders} />
              <TextAreaField label={text.body} path="body" value={body} onChange={setBody} />
              <TextField label={text.client} path="client" value={client} onChange={setClient} code placeholder="127.0.0.1" />
            </FieldProblems>
            <Button kind="primary" type="submit" busy={ask.isPending} disabled={!path}>
              {text.ask}
            </Button>
          </form>
        </Card>
      </Cards>
      {ask.error && <ErrorPanel failure={ask.error} />}
      {ask.data && <Explained report={ask.data} keyHash={key.trim()} />}
    </Page>
  );
}

/** The report of a gateway: the outcome first, then each stage. */
function Explained({ report, keyHash, still }: { report: Report; keyHash?: string; /** It was not asked for: the page does not move to it. */ still?: boolean }) {
  const head = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!still) head.current?.scrollIntoView({ block: 'nearest' });
  }, [report, still]);
  const { outcome } = report;
  const passed = outcome.allowed;
  const failed = report.steps.find((step) => step.result === 'fail');
  const due = failed && decidedBy(failed.facts, outcome.reason);
  return (
    <div ref={head} role="status" className="stack">
      <Card title={passed ? (outcome.status ? text.wouldAnswer : text.allowed) : text.refused(outcome.status, outcome.reason ?? '')}>
        {!passed && <p className={css.lead}>{reasonText(outcome.reason ?? '')}</p>}
        {due && <Due fact={due} api={failed.api ?? report.api?.id} keyHash={keyHash} revision={report.revision} />}
        {outcome.fix && (
          <p>
            {text.fix}: {outcome.fix}
          </p>
        )}
        <Facts
          of={[
            [text.facts, <code key="r">{`${report.method} ${report.path}`}</code>],
            [text.revision, report.revision],
            [text.api, report.api ? <Link to={`/apis/${encodeURIComponent(report.api.id)}`}>{report.api.name || report.api.id}</Link> : text.none],
            [text.apiKey, report.key ? `${report.key.alias || report.key.name}${report.key.policies?.length ? ` (${report.key.policies.join(', ')})` : ''}` : text.unknownKey],
          ]}
        />
      </Card>
      <Card title={text.steps}>
        <ol className={css.steps}>
          {report.steps.map((step, at) => (
            <li key={at}>
              <div className="row">
                <Badge kind={step.result === 'fail' ? 'danger' : step.result === 'untold' ? 'warn' : 'ok'}>{text.results[step.result] ?? step.result}</Badge>
                <strong>{step.stage}</strong>
                {step.api && <span className="muted">{step.api}</span>}
                <span>{step.said}</span>
              </div>
              <Plan facts={step.facts} />
              {!!step.facts?.length && (
                <div className={css.scroll} tabIndex={0} role="region" aria-label={`${text.rules}: ${step.stage}`}>
                  <table className={css.table} aria-label={step.stage}>
                    <thead>
                      <tr>
                        <th scope="col">{text.rule}</th>
                        <th scope="col">{text.value}</th>
                        <th scope="col">{text.seen}</th>
                        <th scope="col">{text.from}</th>
                      </tr>
                    </thead>
                    <tbody>
                      {step.facts.map((fact, n) => (
                        <tr key={n}>
                          <td>
                            <code>{fact.rule}</code>
                          </td>
                          <td>{fact.value}</td>
                          <td>{fact.seen}</td>
                          <td>
                            <From fact={fact} api={step.api ?? report.api?.id} keyHash={keyHash} origins={step === failed ? report.revision : undefined} />
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )}
            </li>
          ))}
        </ol>
      </Card>
    </div>
  );
}

/** The value that decided, who set it, and the way to its field. */
function Due({ fact, api, keyHash, revision }: { fact: Fact; api?: string; keyHash?: string; revision: string }) {
  const places = placesOf(fact, { api, key: keyHash });
  return (
    <>
      <p>
        <code>{fact.rule}</code> {text.is} <strong>{fact.value}</strong>
        {fact.from && ` ${text.inPlace(fact.from)}`}
        {fact.seen && `; ${text.has(fact.seen)}`}
      </p>
      {places.map((place) => (
        <Opening key={place.name} place={place} of={places.length > 1 ? place.name : undefined} revision={revision} />
      ))}
    </>
  );
}

/** The way to a field, and who set it. */
function Opening({ place, of, revision }: { place: Place; of?: string; revision?: string }) {
  return (
    <div className={css.due}>
      <OpenAt place={place} of={of} />
      <Origin place={place} revision={revision} />
    </div>
  );
}

function OpenAt({ place, of }: { place: Place; of?: string }) {
  if (!place.to) return null;
  return (
    <LinkButton to={place.to} search={place.search}>
      {of ? `${text.openAt}: ${of}` : text.openAt}
    </LinkButton>
  );
}

/** What has a value, as links to its field: policy gold, definition. With `origins` also who set it there, as of that revision. */
function From({ fact, api, keyHash, origins }: { fact: Fact; api?: string; keyHash?: string; origins?: string }) {
  const places = placesOf(fact, { api, key: keyHash });
  return (
    <>
      {places.map((place, at) => (
        <span key={place.name}>
          {at > 0 && ', '}
          {place.to ? (
            <Link to={place.to} search={place.search}>
              {place.name}
            </Link>
          ) : (
            place.name
          )}
        </span>
      ))}
      {origins !== undefined &&
        places.map((place) => (
          <div key={place.name} className="muted">
            <Origin place={place} revision={origins} named={places.length > 1} />
          </div>
        ))}
    </>
  );
}

function Why() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const record = useRead(['refusal', id], (signal) => request<Refusal>('GET', `/api/refusals/${encodeURIComponent(id)}`, { signal }), { staleTime: 60_000 });
  if (record.error instanceof Failure && record.error.status === 404) {
    return (
      <Page title={text.one(id)}>
        <EmptyState title={text.title} text={text.missing} action={<LinkButton to="/why">{text.describe}</LinkButton>} />
      </Page>
    );
  }
  return (
    <Page title={text.one(id)} note={<code>{id}</code>}>
      <Loaded query={record}>{(refusal) => <Record refusal={refusal} />}</Loaded>
    </Page>
  );
}

function Record({ refusal }: { refusal: Refusal }) {
  const described: Described = { method: refusal.method || 'GET', url: refusal.path || '/', key_hash: refusal.key_hash, client: refusal.client };
  // The body is not recorded: where it decided, asking again says nothing.
  const repeatable = !bodyDecides(refusal.reason);
  const again = useRead(['explain', described], (signal) => request<Report>('POST', '/api/explain', { body: described, signal }), { enabled: repeatable, on: ['revision', 'up_to_date'], keep: true });
  const place = placeOfRefusal(refusal);
  return (
    <>
      <Card
        title={text.refused(refusal.status, refusal.reason)}
        actions={
          repeatable && (
            <Button busy={again.isFetching} onClick={() => void again.refetch()}>
              {text.again}
            </Button>
          )
        }
      >
        <p className={css.lead}>{reasonText(refusal.reason)}</p>
        {reasons[refusal.reason] && (
          <p>
            {text.fix}: {reasons[refusal.reason]!.fix}
          </p>
        )}
        {place && <Opening place={place} of={place.name} revision={refusal.revision} />}
        <div className="row">
          {refusal.policy && <LinkButton to={`/policies/${encodeURIComponent(refusal.policy)}`}>{text.openPolicy}</LinkButton>}
          <LinkButton to={`/apis/${encodeURIComponent(refusal.api_id)}`}>{text.openAPI}</LinkButton>
          {refusal.revision && <LinkButton to={`/changes/${encodeURIComponent(refusal.revision)}`}>{text.openRevision}</LinkButton>}
          {refusal.key_hash && (
            <LinkButton to="/traffic/refusals" search={{ key: refusal.key_hash }}>
              {text.more}
            </LinkButton>
          )}
        </div>
      </Card>
      <Cards>
        <Card title={text.facts}>
          <Facts
            of={
              [
                [text.facts, <code key="r">{`${refusal.method ?? ''} ${refusal.path ?? ''}`}</code>],
                [text.at, <Time key="t" at={refusal.at} as="full" />],
                [text.message, refusal.message],
                [text.stage, refusal.stage],
                [text.api, <Link key="a" to={`/apis/${encodeURIComponent(refusal.api_id)}`}>{`${refusal.api_name || refusal.api_id}${refusal.version ? ` ${refusal.version}` : ''}`}</Link>],
                [text.apiKey, refusal.key_hash ? <Link key="k" to={`/keys/${encodeURIComponent(refusal.key_hash)}`}>{refusal.key || refusal.key_hash.slice(0, 12)}</Link> : text.unknownKey],
                [text.policy, refusal.policy],
                [text.caller, refusal.client],
                [text.revision, refusal.revision],
                [text.gateway, refusal.gateway],
                [text.upstream, refusal.upstream],
                [text.cause, refusal.cause],
              ].filter(([, value]) => value) as [string, string][]
            }
          />
        </Card>
        {!!refusal.limits?.length && (
          <Card title={text.limits}>
            <Facts
              of={refusal.limits.map((limit) => [
                text.limit(limit.kind, limit.max, limit.period),
                <span key={limit.kind}>
                  {text.left(limit.remaining)}
                  {limit.reset_at && (
                    <>
                      , {text.renews} <Time at={limit.reset_at} as="full" />
                    </>
                  )}
                </span>,
              ])}
            />
          </Card>
        )}
        {refusal.errors && (
          <Card title={text.errors}>
            <pre className={css.answer} tabIndex={0}>
              {refusal.errors}
            </pre>
          </Card>
        )}
      </Cards>
      {again.error && <ErrorPanel failure={again.error} what={text.now} retry={() => void again.refetch()} />}
      {again.data && (
        <>
          <h2 className={css.now}>{text.now}</h2>
          <Explained report={again.data} keyHash={refusal.key_hash} still />
        </>
      )}
      <p className="muted">
        {repeatable ? text.againNote : text.bodyNote}{' '}
        <Link to="/why" search={{ method: described.method, url: described.url, key_hash: described.key_hash, client: described.client }}>
          {text.describe}
        </Link>
      </p>
    </>
  );
}
