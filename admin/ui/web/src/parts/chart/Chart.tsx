import { lazy, Suspense, useState } from 'react';
import { t } from '../../text/en';
import { Button } from '../Button';
import { Skeleton } from '../Skeleton';
import css from './chart.module.css';

const Plot = lazy(() => import('./Plot'));

export interface Series {
  label: string;
  /** One value for each moment; null where nothing is known. */
  values: (number | null)[];
  /** Colour 1 to 6 of the tokens; 6 is for failures alone. By default in turn. */
  colour?: 1 | 2 | 3 | 4 | 5 | 6;
}

export interface ChartProps {
  /** Says what is drawn, for those who cannot see it: "Requests, most at 10:40: 1,200 a minute". */
  summary: string;
  /** Seconds since 1970. */
  times: number[];
  series: Series[];
  /** How a value is written, with its unit. */
  format?: (value: number) => string;
  height?: number;
  stacked?: boolean;
  /** A range was chosen by the mouse, in seconds. */
  onRange?: (from: number, to: number) => void;
}

/** Lines over time, with a sentence and as a table. */
export function Chart(p: ChartProps) {
  const [table, setTable] = useState(false);
  const format = p.format ?? String;
  const nothing = p.series.every((one) => one.values.every((value) => !value));
  return (
    <figure className={css.figure}>
      <figcaption className={css.caption}>
        <span>{p.summary}</span>
        <Button dense kind="quiet" onClick={() => setTable(!table)} aria-pressed={table}>
          {table ? t.chart.chart : t.chart.table}
        </Button>
      </figcaption>
      {nothing && <p className="muted">{t.chart.empty}</p>}
      {table ? (
        <div className={css.scroll} tabIndex={0} role="region" aria-label={p.summary}>
          <table className={css.table}>
            <thead>
              <tr>
                <th scope="col">{t.chart.time}</th>
                {p.series.map((one) => (
                  <th key={one.label} scope="col">
                    {one.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {p.times.map((time, at) => (
                <tr key={time}>
                  <th scope="row">{new Date(time * 1000).toLocaleString()}</th>
                  {p.series.map((one) => (
                    <td key={one.label}>{one.values[at] === null || one.values[at] === undefined ? t.nothing : format(one.values[at])}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Suspense fallback={<Skeleton lines={4} />}>
          <Plot {...p} />
        </Suspense>
      )}
    </figure>
  );
}
