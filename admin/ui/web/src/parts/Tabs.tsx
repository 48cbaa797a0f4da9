import { useLocation } from '@tanstack/react-router';
import { t } from '../text/en';
import { Link } from './Link';
import css from './Tabs.module.css';

/** Tabs are links: which one is open is in the address. */
export function Tabs({ label, tabs }: { label: string; tabs: { to: string; label: string; /** Problems on the tab. */ problems?: number }[] }) {
  const path = useLocation({ select: (location) => location.pathname.replace(/\/$/, '') });
  return (
    <nav className={css.tabs} aria-label={label} data-tabs>
      {tabs.map((tab) => (
        <Link key={tab.to} to={tab.to} aria-current={decodeURI(path) === decodeURI(tab.to) ? 'page' : undefined}>
          {tab.label}
          {!!tab.problems && <span className={css.mark}>{t.form.problems(tab.problems)}</span>}
        </Link>
      ))}
    </nav>
  );
}
