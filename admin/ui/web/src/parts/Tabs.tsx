import { useLocation } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { t } from '../text/en';
import { Link } from './Link';
import css from './Tabs.module.css';

/** Tabs are links: which one is open is in the address. */
export function Tabs({ label, tabs }: { label: string; tabs: { to: string; label: string; /** Problems on the tab. */ problems?: number }[] }) {
  const path = useLocation({ select: (location) => location.pathname.replace(/\/$/, '') });
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const bar = nav.current;
    const open = bar?.querySelector('[aria-current=page]');
    if (!bar || !open) return;
    // On a narrow screen the open tab is brought into view; the page stays where it is.
    const [outer, inner] = [bar.getBoundingClientRect(), open.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right) bar.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }, [path]);
  return (
    <nav ref={nav} className={css.tabs} aria-label={label} data-tabs>
      {tabs.map((tab) => (
        <Link key={tab.to} to={tab.to} aria-current={decodeURI(path) === decodeURI(tab.to) ? 'page' : undefined}>
          {tab.label}
          {!!tab.problems && <span className={css.mark}>{t.form.problems(tab.problems)}</span>}
        </Link>
      ))}
    </nav>
  );
}
