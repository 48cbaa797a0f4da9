import { t } from '../text/en';
import css from './Skeleton.module.css';

/** Stands where content will be; it appears after 150 ms. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div className={css.box} role="status" aria-label={t.loading} data-loading>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} className={css.line} />
      ))}
    </div>
  );
}
