import type { ReactNode } from 'react';
import css from './Card.module.css';

/** A part of a page with its own heading (h2). */
export function Card({ title, actions, children }: { title: ReactNode; actions?: ReactNode; children?: ReactNode }) {
  return (
    <section className={css.card}>
      <div className={css.head}>
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** Cards side by side where there is room. */
export function Cards({ children }: { children: ReactNode }) {
  return <div className={css.grid}>{children}</div>;
}

/** Names with their values. */
export function Facts({ of }: { of: [label: string, value: ReactNode][] }) {
  return (
    <dl className={css.facts}>
      {of.map(([label, value]) => [<dt key={`${label} `}>{label}</dt>, <dd key={label}>{value}</dd>])}
    </dl>
  );
}
