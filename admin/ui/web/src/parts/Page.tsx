import { useMatch } from '@tanstack/react-router';
import { useEffect, useRef, type ReactNode } from 'react';
import { t } from '../text/en';
import css from './Page.module.css';

let last = ''; // path of the page that was drawn before

/**
 * The body of a page: its only h1, what is beside it, and the content. After a change of
 * route the heading takes the focus, unless a tab was chosen.
 */
export function Page(p: { title: string; /** Beside the name: a badge, an id. */ note?: ReactNode; actions?: ReactNode; children?: ReactNode }) {
  const head = useRef<HTMLHeadingElement>(null);
  // Of this page, not of the address: that changes while the page before is still there.
  const path = useMatch({ strict: false, shouldThrow: false, select: (match) => match.pathname });
  useEffect(() => {
    document.title = `${p.title} · ${t.product}`;
  }, [p.title]);
  useEffect(() => {
    if (path === undefined) return;
    const moved = last !== '' && last !== path;
    last = path;
    if (!moved || document.activeElement?.closest('[data-tabs]')) return;
    head.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path]);
  return (
    <div className={css.page}>
      <div className={css.head}>
        <div>
          <h1 ref={head} tabIndex={-1}>
            {p.title}
          </h1>
          {p.note && <div className={css.note}>{p.note}</div>}
        </div>
        {p.actions && <div className={css.actions}>{p.actions}</div>}
      </div>
      {p.children}
    </div>
  );
}
