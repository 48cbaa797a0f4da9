import type { ReactNode } from 'react';
import { Copy } from './Copy';
import css from './EmptyState.module.css';

/** Says what a thing is for and how to get one: a button, and a command that does the same. */
export function EmptyState(p: { title: string; text: ReactNode; action?: ReactNode; command?: string }) {
  return (
    <div className={css.box}>
      <h2>{p.title}</h2>
      <p>{p.text}</p>
      {p.action && <div className="row">{p.action}</div>}
      {p.command && (
        <>
          <pre tabIndex={0}>{p.command}</pre>
          <Copy text={p.command} label="the command" visible />
        </>
      )}
    </div>
  );
}
