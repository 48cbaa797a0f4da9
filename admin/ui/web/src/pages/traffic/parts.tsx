import type { ReactNode } from 'react';
import { Button, LinkButton } from '../../parts/Button';
import { Badge } from '../../parts/Badge';
import { Chart } from '../../parts/chart';
import { Link } from '../../parts/Link';
import { Time } from '../../parts/Time';
import { useURLState } from '../../parts/urlState';
import { cx } from '../../lib';
import { number, short } from '../../text/en';
import { reasonText } from '../../reasons';
import css from './traffic.module.css';
import type { Refusal } from './data';
import { momentsOf, most, ranges, valuesOf, type Range, type UsageRow } from './range';
import { text } from './text';

/** Buttons for the ranges of time. */
export function RangePicker({ range }: { range: Range }) {
  const [, setURL] = useURLState();
  return (
    <div className="row" role="group" aria-label={text.range}>
      {ranges.map((one) => (
        <Button key={one.value} dense aria-pressed={one.value === range.value} kind={one.value === range.value ? 'primary' : 'plain'} onClick={() => setURL({ range: one.value, from: '', to: '', p: '' }, { push: true })}>
          {one.label}
        </Button>
      ))}
    </div>
  );
}

/** Calls over time: those that passed, and refused ones by reason. */
export function Outcomes({ rows, range, onRange }: { rows: UsageRow[]; range: Range; onRange?: (from: number, to: number) => void }) {
  const times = momentsOf(range);
  const refused = rows.filter((row) => row.reason);
  const top = most(refused, (row) => row.reason!, 3);
  const colours = [2, 3, 4] as const;
  const series = [
    { label: text.passed, colour: 1 as const, values: valuesOf(times, rows, (row) => row.hits, (row) => !row.reason && row.hits > 0) },
    ...top.map((name, at) => ({ label: name, colour: colours[at], values: valuesOf(times, rows, (row) => row.hits, (row) => row.reason === name) })),
  ];
  if (refused.some((row) => !top.includes(row.reason!))) {
    series.push({ label: text.otherReasons, colour: 6 as never, values: valuesOf(times, rows, (row) => row.hits, (row) => !!row.reason && !top.includes(row.reason)) });
  }
  const all = rows.reduce((sum, row) => sum + row.hits, 0);
  const bad = refused.reduce((sum, row) => sum + row.hits, 0);
  return <Chart stacked summary={text.outcomes(number(all), number(bad), range.step)} times={times} series={series} format={short} onRange={onRange} />;
}

/** Names with the calls of each, as bars. */
export function Ranks({ label, rows }: { label: string; rows: { key: string; name: ReactNode; calls: number; note?: ReactNode }[] }) {
  const top = Math.max(1, ...rows.map((row) => row.calls));
  if (rows.length === 0) return <p className="muted">{text.none}</p>;
  return (
    <div className={css.scroll}>
      <table className={css.table} aria-label={label}>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              <th scope="row">{row.name}</th>
              <td className={css.end}>{number(row.calls)}</td>
              <td className={css.barCell} aria-hidden>
                <span className={css.bar} style={{ inlineSize: `${Math.max(2, (row.calls / top) * 100)}%` }} />
              </td>
              {row.note !== undefined && <td className="muted">{row.note}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Refused requests, the newest first, each with Why. */
export function RefusalTable({ rows, hideKey }: { rows: Refusal[]; hideKey?: boolean }) {
  return (
    <div className={css.scroll} tabIndex={0} role="region" aria-label={text.refused}>
      <table className={cx(css.table, css.wide)}>
        <thead>
          <tr>
            <th scope="col">{text.time}</th>
            <th scope="col">{text.reason}</th>
            <th scope="col">{text.request}</th>
            <th scope="col">{text.api}</th>
            {!hideKey && <th scope="col">{text.key}</th>}
            <th scope="col">
              <span className="sr-only">{text.why}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.id} ${row.at}`}>
              <td className={css.nowrap}>
                <Time at={row.at} as="full" />
              </td>
              <td>
                <Badge kind={row.status >= 500 ? 'danger' : 'warn'}>
                  {row.status} {row.reason}
                </Badge>
                <div className="muted">{reasonText(row.reason)}</div>
              </td>
              <td className={css.path}>
                {row.method} {row.path}
              </td>
              <td>
                <Link to={`/apis/${encodeURIComponent(row.api_id)}`}>{row.api_name || row.api_id}</Link>
              </td>
              {!hideKey && <td>{row.key_hash ? <Link to={`/keys/${encodeURIComponent(row.key_hash)}`}>{row.key || row.key_hash.slice(0, 12)}</Link> : <span className="muted">{text.noKey}</span>}</td>}
              <td>
                <LinkButton dense to={`/why/${encodeURIComponent(row.id)}`}>
                  {text.why}
                </LinkButton>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
