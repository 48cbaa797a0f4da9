import { useEffect, useState } from 'react';
import { Failure, type Problem } from '../api/failure';
import { useUser } from '../app/session';
import { cx } from '../lib';
import { t } from '../text/en';
import { Button } from './Button';
import { Copy } from './Copy';
import css from './ErrorPanel.module.css';

/**
 * What was tried, the server's words, each problem with a link to its field, the request
 * id and Retry. Statuses 429 and 503 are counted down; then `retry` is called by itself.
 */
export function ErrorPanel(p: {
  failure: unknown;
  /** What was tried, in words: "Saving the policy". */
  what?: string;
  retry?: () => void;
  /** Whether `retry` may be called without being asked: for reads only. */
  auto?: boolean;
  /** Called with a problem whose link is followed; without it, the field is looked for. */
  onProblem?: (problem: Problem) => void;
}) {
  const { role } = useUser();
  const failure = p.failure instanceof Failure ? p.failure : undefined;
  const message = p.failure instanceof Error ? p.failure.message : String(p.failure);
  const chunk = !failure && /dynamically imported module|module script|preload/i.test(message);
  return (
    <div className={css.panel} role="alert">
      <h2>{p.what ? `${t.failure.title}: ${p.what}` : t.failure.title}</h2>
      <p>{chunk ? t.failure.newer : message}</p>
      {failure?.status === 403 && <p>{t.failure.forbidden(t.role.names[role] ?? role)}</p>}
      <Problems problems={failure?.problems ?? []} onProblem={p.onProblem} />
      {failure && failure.method && (
        <p className={css.id}>
          <code>
            {failure.method} {failure.path}
            {failure.status > 0 && ` → ${failure.status}`}
          </code>
          {failure.requestID && (
            <span>
              {t.failure.requestID} <code>{failure.requestID}</code> <Copy text={failure.requestID} label={t.failure.requestID} />
            </span>
          )}
        </p>
      )}
      {failure && p.auto && p.retry && failure.retryAfter > 0 && <Countdown failure={failure} done={p.retry} />}
      {chunk ? (
        <Button onClick={() => location.reload()}>{t.failure.reload}</Button>
      ) : (
        p.retry && <Button onClick={p.retry}>{t.retry}</Button>
      )}
    </div>
  );
}

/** Data from before that could not be read again. */
export function StaleNote(p: { failure: unknown; age: string; retry: () => void }) {
  return (
    <div className={cx(css.panel, css.stale)} role="status">
      <p>
        {t.failure.stale(p.age)} {p.failure instanceof Error ? p.failure.message : String(p.failure)}
      </p>
      <Button dense onClick={p.retry}>
        {t.retry}
      </Button>
    </div>
  );
}

function Problems(p: { problems: Problem[]; onProblem?: (problem: Problem) => void }) {
  if (p.problems.length === 0) return null;
  return (
    <ul className={css.list}>
      {p.problems.map((problem, at) => (
        <li key={at}>
          {problem.path && (
            <>
              <button type="button" className={css.link} onClick={() => (p.onProblem ?? goToField)(problem)}>
                <code>{problem.path}</code>
              </button>
              {': '}
            </>
          )}
          {problem.message}
        </li>
      ))}
    </ul>
  );
}

/** Puts the focus into the field of a problem, or of the nearest member around it. */
export function goToField(problem: Problem): void {
  for (let path = problem.path; path; path = around(path)) {
    const field = fieldAt(path);
    if (field) return focusField(field);
  }
}

/** The field of a path, if it is drawn. */
export const fieldAt = (path: string) => document.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}"]`);

/** Puts the focus into a field, and unfolds what it is in. */
export function focusField(field: HTMLElement): void {
  for (let fold = field.closest('details'); fold; fold = fold.parentElement?.closest('details') ?? null) fold.open = true;
  field.focus();
  field.scrollIntoView({ block: 'center' });
}

/** Puts the focus into the first field of the page that can be changed; false: there is none. */
export function firstField(): boolean {
  const field = [...document.querySelectorAll<HTMLElement>('main :is(input, select, textarea)[data-path]:not(:disabled, [readonly])')].find((one) => one.checkVisibility());
  if (field) focusField(field);
  return field !== undefined;
}

/** The path of the member around one: `a["b"].c[2]`, `a["b"].c`, `a["b"]`, `a`, none. */
function around(path: string): string {
  const shorter = path.replace(/(\.[^.[\]"]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\]|^[^.[]*)$/, '');
  return shorter === path ? '' : shorter;
}

function Countdown({ failure, done }: { failure: Failure; done: () => void }) {
  const until = failure.at + failure.retryAfter * 1000;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const tick = setInterval(() => {
      setNow(Date.now());
      if (Date.now() < until) return;
      clearInterval(tick);
      done();
    }, 500);
    return () => clearInterval(tick);
  }, [until]);
  return <p>{t.failure.wait(Math.max(0, Math.ceil((until - now) / 1000)))}</p>;
}
