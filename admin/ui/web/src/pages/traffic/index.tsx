import { useState } from 'react';
import { useRead } from '../../api';
import { pulse } from '../../app/pulse';
import { useStore } from '../../lib';
import { Button } from '../../parts/Button';
import { Card, Cards } from '../../parts/Card';
import { Chart } from '../../parts/chart';
import { EmptyState } from '../../parts/EmptyState';
import { TextField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Page } from '../../parts/Page';
import { Tabs } from '../../parts/Tabs';
import { Time } from '../../parts/Time';
import { useURLState } from '../../parts/urlState';
import { reasonText } from '../../reasons';
import { duration, number, percent } from '../../text/en';
import { refusals, usage, type Usage } from './data';
import { momentsOf, rangeOf, spanOf, valuesOf, type Range } from './range';
import { Outcomes, RangePicker, Ranks, RefusalTable } from './parts';
import { text } from './text';
import css from './traffic.module.css';

export const pages = { '/traffic': Traffic, '/traffic/refusals': Refused };

const tabs = [
  { to: '/traffic', label: text.overview },
  { to: '/traffic/refusals', label: text.refused },
];

function Traffic() {
  const [url] = useURLState();
  const range = rangeOf(url);
  const about = () => ({ ...spanOf(url), api: url.api });
  const key = [range.value, url.from, url.to, url.api];
  const over = useRead(['usage', 'over', ...key], (signal) => usage({ ...about(), step: range.step, group_by: 'reason' }, signal), { on: ['usage_until'], keep: true });
  const apis = useRead(['usage', 'apis', ...key], (signal) => usage({ ...about(), group_by: 'api', page_size: 10 }, signal), { on: ['usage_until'], keep: true });
  const keys = useRead(['usage', 'keys', ...key], (signal) => usage({ ...about(), group_by: 'key', page_size: 10 }, signal), { on: ['usage_until'], keep: true });
  const why = useRead(['usage', 'reasons', ...key], (signal) => usage({ ...about(), group_by: 'reason', page_size: 20 }, signal), { on: ['usage_until'], keep: true });
  return (
    <Page title={text.title} note={url.api} actions={<RangePicker range={range} />}>
      <Tabs label={text.tabs} tabs={tabs} />
      <Loaded query={over}>{(data) => (data.totals.hits === 0 ? <EmptyState title={text.empty} text={text.emptyText} /> : <Overview data={data} range={range} />)}</Loaded>
      <Cards>
        <Card title={text.byReason}>
          <Loaded query={why}>
            {(data) => (
              <Ranks
                label={text.byReason}
                rows={data.Data.filter((row) => row.reason).map((row) => ({
                  key: row.reason!,
                  calls: row.hits,
                  name: (
                    <Link to="/traffic/refusals" search={{ reason: row.reason, range: range.value }} title={reasonText(row.reason!)}>
                      {row.reason}
                    </Link>
                  ),
                }))}
              />
            )}
          </Loaded>
        </Card>
        <Card title={text.topAPIs}>
          <Loaded query={apis}>
            {(data) => <Ranks label={text.topAPIs} rows={data.Data.map((row) => ({ key: row.api_id!, calls: row.hits, name: <Link to={`/apis/${encodeURIComponent(row.api_id!)}`}>{row.api_name || row.api_id}</Link>, note: row.p99_ms === undefined ? '' : `p99 ${duration(row.p99_ms)}` }))} />}
          </Loaded>
        </Card>
        <Card title={text.topKeys}>
          <Loaded query={keys}>
            {(data) => (
              <Ranks
                label={text.topKeys}
                rows={data.Data.map((row) => ({
                  key: row.key!,
                  calls: row.hits,
                  name: !row.key ? text.noKey : row.key === 'other' ? text.otherKeys : <Link to={`/keys/${encodeURIComponent(row.key)}`} className={row.key_alias ? undefined : 'mono'}>{row.key_alias || row.key.slice(0, 12)}</Link>,
                }))}
              />
            )}
          </Loaded>
        </Card>
      </Cards>
    </Page>
  );
}

function Overview({ data, range }: { data: Usage; range: Range }) {
  const [, setURL] = useURLState();
  const zoom = (from: number, to: number) => setURL({ range: '', from: new Date(from * 1000).toISOString(), to: new Date(to * 1000).toISOString() }, { push: true });
  const times = momentsOf(range);
  const hits = valuesOf(times, data.Data, (row) => row.hits);
  const mean = (value: (row: { mean_ms: number; upstream_mean_ms: number }) => number) =>
    valuesOf(times, data.Data, (row) => row.hits * value(row)).map((sum, at) => (hits[at] ? sum / hits[at] : null));
  const bad = data.Data.reduce((sum, row) => sum + (row.reason ? row.hits : 0), 0);
  const counted = useStore(pulse)?.usage_until;
  const own = data.totals.mean_ms - data.totals.upstream_mean_ms;
  return (
    <>
      <dl className={css.tiles}>
        <Tile name={text.requests} value={number(data.totals.hits)} />
        <Tile name={text.refusedShare} value={percent(bad / Math.max(1, data.totals.hits))} />
        <Tile name={text.gatewayTime} value={duration(own)} />
        <Tile name={text.upstreamTime} value={duration(data.totals.upstream_mean_ms)} />
      </dl>
      <Cards>
        <Card title={text.outcomesTitle}>
          <Outcomes rows={data.Data} range={range} onRange={zoom} />
        </Card>
        <Card title={text.timesTitle}>
          <Chart
            summary={text.times(duration(own), duration(data.totals.upstream_mean_ms))}
            times={times}
            format={duration}
            onRange={zoom}
            series={[
              { label: text.upstream, values: mean((row) => row.upstream_mean_ms) },
              { label: text.gateway, values: mean((row) => row.mean_ms - row.upstream_mean_ms) },
            ]}
          />
        </Card>
      </Cards>
      {counted && (
        <p className="muted">
          {text.counted} <Time at={counted} as="full" />
        </p>
      )}
    </>
  );
}

function Tile({ name, value }: { name: string; value: string }) {
  return (
    <div className={css.tile}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Refused() {
  const [url, setURL] = useURLState();
  const range = rangeOf(url, '24h');
  const page = Math.max(1, Number(url.p) || 1);
  const [api, setAPI] = useState(url.api ?? '');
  const [key, setKey] = useState(url.key ?? '');
  const query = useRead(
    ['refusals', range.value, url.from, url.to, url.api, url.key, url.reason, page],
    (signal) => refusals({ ...spanOf(url, '24h'), api: url.api, key: url.key, reason: url.reason, p: page, page_size: 50 }, signal),
    { on: ['usage_until'], keep: true },
  );
  const narrowed = !!(url.api || url.key || url.reason);
  const clear = () => {
    setAPI('');
    setKey('');
    setURL({ api: '', key: '', reason: '', p: '' });
  };
  return (
    <Page title={text.refusalsTitle} actions={<RangePicker range={range} />}>
      <Tabs label={text.tabs} tabs={tabs} />
      <form
        role="search"
        className={css.filters}
        onSubmit={(event) => {
          event.preventDefault();
          setURL({ api: api.trim(), key: key.trim(), p: '' });
        }}
      >
        <TextField label={text.filterAPI} value={api} onChange={setAPI} type="search" />
        <TextField label={text.filterKey} value={key} onChange={setKey} type="search" code />
        <Button type="submit">{text.apply}</Button>
        {narrowed && <Button onClick={clear}>{text.clear}</Button>}
      </form>
      <Loaded query={query}>
        {(data) => (
          <>
            {data.counts.length > 0 && (
              <Card title={text.byReason}>
                <Ranks
                  label={text.byReason}
                  rows={data.counts.map((one) => ({
                    key: one.reason,
                    calls: one.calls,
                    name: (
                      <Link to="/traffic/refusals" search={{ ...url, reason: one.reason, p: undefined }}>
                        {one.reason}
                      </Link>
                    ),
                    note: reasonText(one.reason),
                  }))}
                />
              </Card>
            )}
            {data.Data.length === 0 ? (
              <EmptyState title={text.noRefusals} text={text.noRefusalsText} action={narrowed ? <Button onClick={clear}>{text.clear}</Button> : undefined} />
            ) : (
              <Card title={text.refused}>
                <p className="muted">{text.shown(data.total, Math.max(data.total, data.counts.reduce((sum, one) => sum + one.calls, 0)))}</p>
                <RefusalTable rows={data.Data} />
                <div className="row">
                  {page > 1 && <Button onClick={() => setURL({ p: String(page - 1) }, { push: true })}>{text.newer}</Button>}
                  {page < data.Pages && <Button onClick={() => setURL({ p: String(page + 1) }, { push: true })}>{text.more}</Button>}
                </div>
              </Card>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}
