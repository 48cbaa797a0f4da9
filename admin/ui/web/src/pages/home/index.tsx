import { Check, Circle } from 'lucide-react';
import type { ReactNode } from 'react';
import { request, useRead } from '../../api';
import { pulse } from '../../app/pulse';
import { cx, useStore } from '../../lib';
import { Badge } from '../../parts/Badge';
import { LinkButton } from '../../parts/Button';
import { Card, Cards } from '../../parts/Card';
import { Spark } from '../../parts/chart/Spark';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { Skeleton } from '../../parts/Skeleton';
import { Time } from '../../parts/Time';
import { duration, number, short } from '../../text/en';
import { areas } from '..';
import css from './home.module.css';
import { text } from './text';

export const pages = { '/': Home };

const has = (name: string) => areas.some((area) => area.name === name);

/** A link where the area exists, else the text alone. */
function To({ area, to, children }: { area: string; to: string; children: ReactNode }) {
  return has(area) ? <Link to={to}>{children}</Link> : children;
}

function Home() {
  const first = useFirstSteps();
  const waiting = first.data === undefined && !first.isError;
  // The rest is read meanwhile, but not drawn: the checklist would move it.
  return (
    <Page title={text.title}>
      {waiting && <Skeleton lines={6} />}
      <div hidden={waiting} className={css.all}>
        <Checklist done={first.data} />
        <Tiles />
        <Cards>
          <NeedsYou />
          <Gateways />
          <Refusals />
          <Changes />
        </Cards>
      </div>
    </Page>
  );
}

interface Counts {
  hits: number;
  errors: number;
  mean_ms: number;
  upstream_mean_ms: number;
  p99_ms?: number;
}

interface Report {
  totals: Counts;
  Data: (Counts & { at?: string; reason?: string })[];
}

const hourAgo = () => Math.floor(Date.now() / 1000) - 3600;

const usage = (path: string, query: Record<string, string | number>, signal: AbortSignal) => request<Report>('GET', path, { query: { from: hourAgo(), ...query }, signal });

/** One value for each of the last 60 minutes. */
function byMinute(report: Report, of: (row: Counts) => number): number[] {
  const start = Math.floor(hourAgo() / 60) + 1;
  const values = Array.from({ length: 60 }, () => 0);
  for (const row of report.Data) {
    const at = Math.floor(Date.parse(row.at ?? '') / 60_000) - start;
    if (at >= 0 && at < 60) values[at] = of(row);
  }
  return values;
}

function Tiles() {
  const until = useStore(pulse)?.usage_until;
  const totals = useRead(['usage', 'hour'], (signal) => usage('/api/usage', {}, signal), { on: ['usage_until'] });
  const minutes = useRead(['usage', 'minutes'], (signal) => usage('/api/usage', { step: 'minute', page_size: 60 }, signal), { on: ['usage_until'] });
  return (
    <section aria-label={text.hour}>
      <Loaded query={totals} what={text.hour} waiting={<div className={cx(css.tiles, css.waiting)} />}>
        {({ totals: all }) => {
          const hits = minutes.data ? byMinute(minutes.data, (row) => row.hits) : [];
          const errors = minutes.data ? byMinute(minutes.data, (row) => row.errors) : [];
          return (
            <div className={css.tiles}>
              <Tile title={text.tiles.requests} figure={short(all.hits)} note={text.tiles.perMinute(all.hits / 60)} to="/traffic">
                <Spark values={hits} label={text.tiles.sparkRequests(Math.max(0, ...hits))} />
              </Tile>
              <Tile title={text.tiles.refused} figure={all.hits > 0 ? text.tiles.share(all.errors / all.hits) : '–'} note={text.tiles.count(all.errors)} to="/traffic/refusals">
                <Spark values={errors} colour={6} label={text.tiles.sparkErrors(Math.max(0, ...errors))} />
              </Tile>
              <Tile title={text.tiles.p99} figure={all.p99_ms === undefined ? '–' : duration(all.p99_ms)} note={text.tiles.p99Note} to="/traffic" />
              <Tile
                title={text.tiles.upstream}
                figure={all.hits > 0 ? duration(all.upstream_mean_ms) : '–'}
                note={all.hits > 0 ? text.tiles.gateway(Math.max(0, all.mean_ms - all.upstream_mean_ms)) : '–'}
                to="/traffic"
              />
            </div>
          );
        }}
      </Loaded>
      <p className={cx('muted', css.until)}>{until ? <>{text.tiles.until} <Time at={until} as="clock" /></> : text.tiles.never}</p>
    </section>
  );
}

function Tile(p: { title: string; figure: string; note: string; to: string; children?: ReactNode }) {
  return (
    <div className={css.tile}>
      <h2>{p.title}</h2>
      <p className={css.figure}>
        <To area="traffic" to={p.to}>
          {p.figure}
        </To>
      </p>
      <div className={css.line}>
        <span className="muted">{p.note}</span>
        {p.children}
      </div>
    </div>
  );
}

interface Gateway {
  name: string;
  revision: string;
  error: string;
  seen_at: string;
  up_to_date: boolean;
}

const useGateways = () => useRead(['gateways', 'home'], (signal) => request<{ gateways: Gateway[] }>('GET', '/api/gateways', { signal }), { on: ['revision', 'gateways', 'up_to_date'], every: 30_000 });

const silent = (one: Gateway) => Date.now() - Date.parse(one.seen_at) > 120_000;

function NeedsYou() {
  const now = useStore(pulse);
  const gateways = useGateways();
  const certificates = useRead(['certificates', 'home'], (signal) => request<{ certificates: Certificate[] }>('GET', '/api/certs', { signal }), { staleTime: 60_000 });
  const soon = (certificates.data?.certificates ?? []).filter((one) => one.not_after && Date.parse(one.not_after) - Date.now() < 30 * 86_400_000);
  const behind = (gateways.data?.gateways ?? []).filter((one) => !one.up_to_date && !silent(one));
  const items: { key: string; label: ReactNode; area: string; to: string; verb: string }[] = [];
  if (now?.pending_requests) items.push({ key: 'requests', label: text.needs.requests(now.pending_requests), area: 'requests', to: '/requests', verb: text.needs.review });
  if (now?.failed_deliveries) items.push({ key: 'deliveries', label: text.needs.deliveries(now.failed_deliveries), area: 'deliveries', to: '/deliveries', verb: text.needs.open });
  for (const one of behind) items.push({ key: `gateway ${one.name}`, label: text.needs.gateway(one.name, one.error || text.needs.behind), area: 'gateways', to: '/gateways', verb: text.needs.open });
  for (const one of soon) {
    items.push({
      key: `certificate ${one.id}`,
      label: (
        <>
          {text.needs.certificate(one.dns_names?.[0] ?? one.subject ?? one.id)} <Time at={one.not_after} />
        </>
      ),
      area: 'certificates',
      to: '/certificates',
      verb: text.needs.open,
    });
  }
  return (
    <Card title={text.needs.title}>
      {items.length === 0 ? (
        <p className="muted">{text.needs.none}</p>
      ) : (
        <ul className={css.list}>
          {items.map((one) => (
            <li key={one.key}>
              <span>{one.label}</span>
              {has(one.area) && (
                <LinkButton dense to={one.to}>
                  {one.verb}
                </LinkButton>
              )}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

interface Certificate {
  id: string;
  subject?: string;
  dns_names?: string[];
  not_after?: string;
}

function Gateways() {
  const gateways = useGateways();
  return (
    <Card title={<To area="gateways" to="/gateways">{text.gateways.title}</To>}>
      <Loaded query={gateways} what={text.gateways.title}>
        {({ gateways: all }) =>
          all.length === 0 ? (
            <p className="muted">{text.gateways.none}</p>
          ) : (
            <ul className={css.list}>
              {all.slice(0, 8).map((one) => (
                <li key={one.name}>
                  <span>
                    {one.name} <span className="muted">{text.gateways.revision(one.revision)}</span>
                  </span>
                  <span className="row">
                    <Time at={one.seen_at} />
                    {silent(one) ? <Badge>{text.gateways.silent}</Badge> : one.up_to_date ? <Badge kind="ok">{text.gateways.ok}</Badge> : <Badge kind="warn">{text.gateways.behind}</Badge>}
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

function Refusals() {
  const refusals = useRead(['usage', 'rejections'], (signal) => usage('/api/usage/rejections', { page_size: 6 }, signal), { on: ['usage_until'] });
  return (
    <Card title={<To area="traffic" to="/traffic/refusals">{text.refusals.title}</To>}>
      <Loaded query={refusals} what={text.refusals.title}>
        {({ Data: rows }) => {
          const most = Math.max(1, ...rows.map((row) => row.hits));
          return rows.length === 0 ? (
            <p className="muted">{text.refusals.none}</p>
          ) : (
            <ul className={css.list}>
              {rows.map((row) => (
                <li key={row.reason} className={css.bar}>
                  <code>{row.reason || text.refusals.failed}</code>
                  <span>{number(row.hits)}</span>
                  <svg width="100%" height="4" aria-hidden="true">
                    <rect width={`${(100 * row.hits) / most}%`} height="4" rx="2" fill="var(--chart-6)" />
                  </svg>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Card>
  );
}

interface Revision {
  revision: number;
  author: string;
  reason: string;
  at: string;
  summary?: { kind: string; id: string; name?: string; action: string }[] | null;
}

function Changes() {
  const changes = useRead(['changes', 'home'], (signal) => request<{ revisions: Revision[] }>('GET', '/api/config/revisions', { query: { page_size: 6 }, signal }), { on: ['revision'] });
  return (
    <Card title={<To area="changes" to="/changes">{text.changes.title}</To>}>
      <Loaded query={changes} what={text.changes.title}>
        {({ revisions }) =>
          revisions.length === 0 ? (
            <p className="muted">{text.changes.none}</p>
          ) : (
            <ul className={css.list}>
              {revisions.map((one) => {
                const first = Array.isArray(one.summary) ? one.summary[0] : undefined;
                return (
                  <li key={one.revision}>
                    <span>
                      <To area="changes" to={`/changes/${one.revision}`}>
                        {one.revision}
                      </To>{' '}
                      {one.reason || (first ? `${first.kind} "${first.name || first.id}" ${first.action}` : text.changes.noReason)}
                    </span>
                    <span className="muted">
                      {text.changes.by(one.author)}, <Time at={one.at} />
                    </span>
                  </li>
                );
              })}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

interface FirstSteps {
  api: boolean;
  /** The API, if there is one only. */
  only: string | undefined;
  key: boolean;
  call: boolean;
}

const useFirstSteps = () =>
  useRead<FirstSteps>(
    ['home', 'first'],
    async (signal) => {
      const [apis, keys, calls] = await Promise.all([
        request<{ rows: { api_id: string }[] }>('GET', '/api/apis', { query: { page_size: 2, view: 'row' }, signal }),
        request<{ rows: unknown[] }>('GET', '/api/keys', { query: { page_size: 1, view: 'row' }, signal }),
        request<Report>('GET', '/api/usage', { query: { from: Math.floor(Date.now() / 1000) - 7 * 86_400 }, signal }),
      ]);
      return { api: apis.rows.length > 0, only: apis.rows.length === 1 ? apis.rows[0]!.api_id : undefined, key: keys.rows.length > 0, call: calls.totals.hits > 0 };
    },
    { on: ['revision', 'usage_until'], every: 5_000 },
  );

/** The checklist of the first run: it ticks itself off, and goes when all is done. */
function Checklist({ done }: { done: FirstSteps | undefined }) {
  if (!done || (done.api && done.key && done.call)) return null;
  const steps = [
    { name: 'api', done: done.api, label: text.checklist.api, help: text.checklist.apiHelp, area: 'apis', to: '/apis/new', verb: text.checklist.newAPI },
    { name: 'key', done: done.key, label: text.checklist.key, help: text.checklist.keyHelp, area: 'keys', to: '/keys/new', search: { api: done.only }, verb: text.checklist.newKey },
    { name: 'call', done: done.call, label: text.checklist.call, help: text.checklist.callHelp, area: '', to: '', verb: '' },
  ];
  return (
    <Card title={text.checklist.title}>
      <ol className={css.list}>
        {steps.map((one) => (
          <li key={one.name} className={css.check} data-done={one.done || undefined}>
            {one.done ? <Check size={18} className={css.done} aria-label={text.checklist.done} /> : <Circle size={18} aria-label={text.checklist.toDo} />}
            <div>
              <p>{one.label}</p>
              <p className="muted">{one.help}</p>
            </div>
            {!one.done && has(one.area) && (
              <Needs role="editor">
                <LinkButton dense to={one.to} search={one.search}>
                  {one.verb}
                </LinkButton>
              </Needs>
            )}
          </li>
        ))}
      </ol>
    </Card>
  );
}
