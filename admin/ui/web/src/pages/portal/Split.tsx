import { ArrowLeft } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from '../../parts/Button';
import css from './Split.module.css';

/** A list with what is open of it: side by side where there is room, else one of them. */
export function Split(p: { list: ReactNode; open: boolean; /** What is shown of the open row. */ panel: ReactNode; label: string; back: string; onClose: () => void; pick?: string }) {
  return (
    <div className={css.split} data-open={p.open ? '' : undefined}>
      <div className={css.list}>{p.list}</div>
      {p.open ? (
        <section className={css.panel} aria-label={p.label}>
          <Button dense kind="quiet" className={css.back} onClick={p.onClose}>
            <ArrowLeft size={14} aria-hidden /> {p.back}
          </Button>
          {p.panel}
        </section>
      ) : (
        p.pick && <p className={css.pick}>{p.pick}</p>
      )}
    </div>
  );
}
