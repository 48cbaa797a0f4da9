import { Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { CircleUser, Menu as MenuIcon, Search } from 'lucide-react';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { online } from '../api/client';
import { useStore } from '../lib';
import { areas, type Area } from '../pages';
import { Button } from '../parts/Button';
import { Disclosure } from '../parts/Disclosure';
import { Link } from '../parts/Link';
import { Skeleton } from '../parts/Skeleton';
import { Toasts } from '../parts/toasts';
import { t } from '../text/en';
import css from './Layout.module.css';
import { pulse } from './pulse';
import { nameOf, roleAllows, signOut, useCan, useUser } from './session';
import { modKey, useShortcuts } from './shortcuts';
import { setTheme, theme, type Theme } from './theme';

const Palette = lazy(() => import('./Palette'));
const Help = lazy(() => import('./Help'));

/** The frame around every page: top bar, navigation and main. */
export function Layout({ ready }: { ready: boolean }) {
  const [open, setOpen] = useState<'palette' | 'help' | ''>('');
  const [menu, setMenu] = useState(false);
  const path = useLocation({ select: (location) => location.pathname });
  const up = useStore(online);
  const main = useRef<HTMLElement>(null);
  const navigate = useNavigate();
  const may = useCan('editor');
  useEffect(() => setMenu(false), [path]);
  useShortcuts([
    { keys: 'Mod+k', label: t.help.keys.palette, run: () => setOpen('palette') },
    { keys: '?', label: t.help.keys.help, run: () => setOpen('help') },
    { keys: '/', label: t.help.keys.search, run: () => (document.querySelector<HTMLElement>('main [type=search]') ?? main.current)?.focus() },
    ...areas.map((area) => (area.go && area.label ? { keys: `g ${area.go}`, label: t.help.keys.go(area.label), run: () => void navigate({ to: area.paths[0]! }) } : undefined)),
    ...areas.map((area) => (area.create && may ? { keys: `c ${area.create.key}`, label: area.create.label, run: () => void navigate({ to: `${area.paths[0]}/new` }) } : undefined)),
  ]);
  return (
    <div className={css.frame}>
      <a className={css.skip} href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        {t.skip}
      </a>
      <header className={css.top}>
        <div className={css.start}>
          <Button className={css.burger} kind="quiet" aria-label={t.nav.menu} aria-expanded={menu} aria-controls="nav" onClick={() => setMenu(!menu)}>
            <MenuIcon size={18} aria-hidden />
          </Button>
          <Link className={css.brand} to="/">
            <Mark />
            {t.product}
          </Link>
        </div>
        <button type="button" className={css.search} onClick={() => setOpen('palette')} aria-haspopup="dialog">
          <Search size={16} aria-hidden />
          <span>{t.top.palette}</span>
          <kbd>{modKey}K</kbd>
        </button>
        <div className={css.end}>
          <Status />
          <UserMenu onHelp={() => setOpen('help')} />
        </div>
      </header>
      <Navigation open={menu} path={path} />
      <main id="main" className={css.main} ref={main} tabIndex={-1}>
        {!up && (
          <p className={css.offline} role="status">
            {t.top.offline}
          </p>
        )}
        {ready ? (
          <Suspense fallback={<Skeleton lines={6} />}>
            <Outlet />
          </Suspense>
        ) : (
          <Skeleton lines={6} />
        )}
      </main>
      <Toasts />
      <Suspense fallback={null}>
        {open === 'palette' && <Palette onClose={() => setOpen('')} />}
        {open === 'help' && <Help onClose={() => setOpen('')} />}
      </Suspense>
    </div>
  );
}

function Mark() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="var(--accent)" />
      <path d="M7 11h18M7 16h12M7 21h18M23 14v4" fill="none" stroke="var(--on-accent)" strokeWidth="3" strokeLinecap="round" />
    </svg>
  );
}

/** Which revision is in force, and whether every gateway has it. */
function Status() {
  const now = useStore(pulse);
  if (!now) return null;
  const good = now.gateways > 0 && now.up_to_date >= now.gateways;
  const label = `${t.top.revision(now.revision)} ${t.top.gatewaysLong(now.up_to_date, now.gateways)}`;
  const content = (
    <>
      <span className="muted">{t.top.revision(now.revision)}</span>{' '}
      <span>{t.top.gateways(now.up_to_date, now.gateways)}</span>
      <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
        {good ? <circle cx="6" cy="6" r="4" fill="var(--ok)" /> : <path d="M6 1l5.5 10H.5z" fill="var(--warn)" />}
      </svg>
    </>
  );
  return areas.some((area) => area.name === 'gateways') ? (
    <Link className={css.status} to="/gateways" aria-label={label} title={label}>
      {content}
    </Link>
  ) : (
    <span className={css.status} role="img" aria-label={label} title={label}>
      {content}
    </span>
  );
}

function UserMenu({ onHelp }: { onHelp: () => void }) {
  const user = useUser();
  const now = useStore(theme);
  if (!user.id) return null;
  return (
    <Disclosure
      label={
        <>
          <CircleUser size={18} aria-hidden />
          <span className={css.userName}>{nameOf(user)}</span>
        </>
      }
    >
      {(close) => (
        <>
          <Link to="/account" onClick={close}>
            {t.top.account}
          </Link>
          <Link to="/about" onClick={close}>
            {t.top.about}
          </Link>
          <button type="button" onClick={() => (close(), onHelp())}>
            {t.top.shortcuts}
          </button>
          <div className={css.theme}>
            <label htmlFor="theme" className="muted">
              {t.top.theme}
            </label>
            <select id="theme" value={now} onChange={(event) => setTheme(event.target.value as Theme)}>
              {Object.entries(t.top.themes).map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </div>
          <button type="button" onClick={() => void signOut()}>
            {t.top.signOut}
          </button>
        </>
      )}
    </Disclosure>
  );
}

const groups = ['', 'gateway', 'portal', 'insight', 'system'] as const;

function Navigation({ open, path }: { open: boolean; path: string }) {
  const user = useUser();
  // Until the role is known there are no items: those that come later would move others.
  const shown = user.id ? areas.filter((area) => area.label && roleAllows(user.role, area.role ?? 'viewer')) : [];
  return (
    <nav id="nav" className={css.nav} aria-label={t.nav.label} data-open={open || undefined}>
      <div className={css.navInner}>
        {groups.map((group) => {
          const of = shown.filter((area) => (area.group ?? '') === group);
          if (of.length === 0) return null;
          return (
            <div key={group} className={css.group}>
              {group && <h2>{t.nav.groups[group]}</h2>}
              <ul className={css.items}>
                {of.map((area) => (
                  <Item key={area.name} area={area} path={path} />
                ))}
              </ul>
            </div>
          );
        })}
      </div>
    </nav>
  );
}

function Item({ area, path }: { area: Area; path: string }) {
  const now = useStore(pulse);
  const to = area.paths[0]!;
  const here = to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
  const count = area.name === 'requests' ? now?.pending_requests : area.name === 'deliveries' ? now?.failed_deliveries : 0;
  return (
    <li>
      <Link to={to} aria-current={here ? 'page' : undefined}>
        {area.label}
        {!!count && <span className={css.count}>{count}</span>}
      </Link>
    </li>
  );
}
