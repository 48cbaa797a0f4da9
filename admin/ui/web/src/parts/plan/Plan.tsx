// The query plan of a GraphQL operation: a picture, and the same as a list.
import { useId, useSyncExternalStore } from 'react';
import css from './plan.module.css';
import { box, draw, planOf, type Box, type Fetch, type PlanFact } from './plan';
import { text as t } from './text';

const small = matchMedia('(max-width: 40rem)');
const watch = (changed: () => void) => {
  small.addEventListener('change', changed);
  return () => small.removeEventListener('change', changed);
};

/** The plan that an explanation has among its rules; nothing if it has none. */
export function Plan({ facts }: { facts: PlanFact[] | undefined }) {
  const fetches = planOf(facts);
  const narrow = useSyncExternalStore(watch, () => small.matches);
  const id = useId();
  if (fetches.length === 0) return null;
  const drawing = draw(fetches, narrow);
  const sources = [...new Set(fetches.map((one) => one.source))];
  return (
    <figure className={css.plan} aria-labelledby={id}>
      <figcaption id={id}>
        <strong>{t.title}</strong> <span className="muted">{t.of(fetches.length, sources.length)}</span>
      </figcaption>
      <div className={css.scroll} tabIndex={0} role="region" aria-label={t.picture}>
        <svg width={drawing.width + 2} height={drawing.height + 2} viewBox={`-1 -1 ${drawing.width + 2} ${drawing.height + 2}`} role="img" aria-label={fetches.map((one) => `${one.n}. ${t.fetch(one.source, one.at, one.after)}`).join('; ')}>
          {drawing.lines.map((path) => (
            <path key={path} className={css.line} d={path} />
          ))}
          <Node at={drawing.boxes.get(0)!} head={t.operation} />
          {fetches.map((one) => (
            <Node key={one.n} at={drawing.boxes.get(one.n)!} head={`${one.n}. ${one.source}`} fetch={one} colour={sources.indexOf(one.source) % 5} />
          ))}
        </svg>
      </div>
      <details>
        <summary>{t.list}</summary>
        <ol>
          {fetches.map((one) => (
            <li key={one.n}>
              {t.fetch(one.source, one.at, one.after)}
              {one.operation && <pre tabIndex={0}>{one.operation}</pre>}
            </li>
          ))}
        </ol>
      </details>
    </figure>
  );
}

/** How many characters of a text a box has room for. */
const room = { head: 24, at: 22 };
const cut = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function Node({ at, head, fetch, colour }: { at: Box; head: string; fetch?: Fetch; colour?: number }) {
  const place = fetch && (fetch.at || t.whole);
  return (
    <g transform={`translate(${at.x} ${at.y})`}>
      <title>{place ? `${head}: ${place}` : head}</title>
      <rect className={css.box} width={box.width} height={box.height} rx={6} />
      {colour !== undefined && <rect className={css.colour} data-colour={colour} width={4} height={box.height - 12} x={6} y={6} rx={2} />}
      <text className={css.head} x={18} y={place ? 22 : 31}>
        {cut(head, room.head)}
      </text>
      {place && (
        <text className={css.at} x={18} y={40}>
          {cut(place, room.at)}
        </text>
      )}
    </g>
  );
}
