import { X } from 'lucide-react';
import { createStore, cx, useStore } from '../lib';
import { t } from '../text/en';
import { Button } from './Button';
import css from './toasts.module.css';

export interface Toast {
  text: string;
  kind?: 'ok' | 'warn' | 'danger' | 'info';
  /** A toast of the same name replaces the one that is there. */
  name?: string;
}

const toasts = createStore<(Toast & { id: number })[]>([]);
let next = 1;

/** Says something at the edge of the page. Failures stay until they are dismissed. */
export function toast(one: Toast): void {
  const id = next++;
  toasts.set([...toasts.get().filter((other) => !one.name || other.name !== one.name), { ...one, id }].slice(-4));
  if (one.kind !== 'danger' && one.kind !== 'warn') setTimeout(() => dismiss(id), 8000);
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((one) => one.id !== id));
}

export function Toasts() {
  const all = useStore(toasts);
  return (
    <section className={css.region} role="status" aria-live="polite" aria-label="Messages">
      {all.map((one) => (
        <div key={one.id} className={cx(css.toast, one.kind && css[one.kind])}>
          <p>{one.text}</p>
          <Button dense kind="quiet" aria-label={t.dismiss} onClick={() => dismiss(one.id)}>
            <X size={14} aria-hidden />
          </Button>
        </div>
      ))}
    </section>
  );
}
