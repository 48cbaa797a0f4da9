import { useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Failure, request } from '../api';
import { useStore } from '../lib';
import { areas } from '../pages';
import { Dialog } from '../parts/Dialog';
import { toast } from '../parts/toasts';
import { t } from '../text/en';
import css from './Palette.module.css';
import { hashOf, kindOf } from './pasted';
import { roleAllows, useUser } from './session';
import { shortcuts } from './shortcuts';

interface Found {
  kind: string;
  id: string;
  name: string;
  detail?: string;
}

interface Entry {
  group: string;
  label: string;
  detail?: string;
  run: () => void | Promise<void>;
}

/** Where an object of a kind is shown. */
const pageOf: Record<string, (id: string) => string> = {
  api: (id) => `/apis/${id}`,
  policy: (id) => `/policies/${id}`,
  key: (id) => `/keys/${id}`,
  developer: (id) => `/developers/${id}`,
  catalogue: (id) => `/catalogue/${id}`,
  document: (id) => `/documents/${id}`,
  request: (id) => `/requests?id=${id}`,
  user: (id) => `/users?q=${id}`,
};

const has = (name: string) => areas.some((area) => area.name === name);

/** Search and go: pages, objects, pasted ids and keys, and the verbs of the page. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const navigate = useNavigate();
  const user = useUser();
  const verbs = useStore(shortcuts);
  const found = useSearch(text.trim());
  const gone = useRef(false);
  const go = (to: string) => {
    gone.current = true;
    onClose();
    const [path, search] = to.split('?') as [string, string?];
    // Once the dialog is gone, the heading of the page can take the focus.
    setTimeout(() => void navigate({ to: path, search: Object.fromEntries(new URLSearchParams(search)) as never }), 0);
  };

  const entries = useMemo<Entry[]>(() => {
    const wanted = text.trim().toLowerCase();
    const places = areas
      .filter((area) => (area.label || area.name === 'account' || area.name === 'about') && roleAllows(user.role, area.role ?? 'viewer'))
      .map((area) => ({ label: area.label ?? (area.name === 'account' ? t.top.account : t.top.about), to: area.paths[0]! }))
      .filter((place) => place.label.toLowerCase().includes(wanted))
      .map((place): Entry => ({ group: t.palette.go, label: place.label, run: () => go(place.to) }));
    const objects = found
      .filter((one) => pageOf[one.kind])
      .map((one): Entry => ({ group: t.palette.found, label: one.name || one.id, detail: [one.kind, one.detail].filter(Boolean).join(' · '), run: () => go(pageOf[one.kind]!(encodeURIComponent(one.id))) }));
    const actions = wanted
      ? verbs
          .filter((one) => !one.keys.startsWith('g ') && !['Mod+k', '?', '/'].includes(one.keys) && one.label.toLowerCase().includes(wanted))
          .map((one): Entry => ({ group: t.palette.verbs, label: one.label, detail: one.keys, run: () => (onClose(), one.run(new KeyboardEvent('keydown'))) }))
      : [];
    return [...pasted(text.trim(), go), ...objects, ...places, ...actions];
  }, [text, found, user.role, verbs]);

  useEffect(() => setAt(0), [text]);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    void Promise.resolve(entry.run()).catch((cause: unknown) => toast({ kind: 'danger', text: cause instanceof Error ? cause.message : String(cause) }));
  };
  const current = Math.min(at, entries.length - 1);
  return (
    <Dialog title={t.palette.title} onClose={onClose} focus={input} back={() => (gone.current ? false : undefined)} plain>
      <input
        ref={input}
        className={css.input}
        type="text"
        role="combobox"
        aria-expanded
        aria-controls="palette-list"
        aria-activedescendant={current >= 0 ? `palette-${current}` : undefined}
        aria-label={t.palette.title}
        placeholder={t.palette.hint}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault();
            const step = event.key === 'ArrowDown' ? 1 : -1;
            setAt((current + step + entries.length) % Math.max(1, entries.length));
          } else if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
            event.preventDefault();
            choose(entries[current]);
          }
        }}
      />
      <ul id="palette-list" role="listbox" aria-label={t.palette.title} className={css.list}>
        {entries.map((entry, index) => (
          <li
            key={`${entry.group} ${entry.label} ${entry.detail ?? ''}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === current}
            ref={index === current ? (element) => element?.scrollIntoView({ block: 'nearest' }) : undefined}
            onClick={() => choose(entry)}
          >
            <span className={css.label}>{entry.label}</span>
            <span className="muted">{entry.detail ?? entry.group}</span>
          </li>
        ))}
      </ul>
      <p className={entries.length === 0 ? 'muted' : 'sr-only'} role="status">
        {entries.length === 0 && text.trim() !== '' && t.palette.none}
      </p>
    </Dialog>
  );
}

/** What a pasted text can be: the id of a request, or a key. */
function pasted(text: string, go: (to: string) => void): Entry[] {
  const kind = kindOf(text);
  const entries: Entry[] = [];
  if (kind.key && has('keys')) {
    entries.push({ group: t.palette.go, label: t.palette.key, run: () => findKey(kind.key, go) });
  }
  if (kind.request && has('why')) {
    entries.push({ group: t.palette.go, label: t.palette.why(text), run: () => go(`/why/${encodeURIComponent(text)}`) });
  }
  return entries;
}

async function findKey(text: string, go: (to: string) => void): Promise<void> {
  const hash = await hashOf(text);
  try {
    // Only the hash is sent, and in a body: paths are logged.
    const answer = await request<{ key_hash: string }>('POST', '/api/keys/find', { body: { key: hash } });
    go(`/keys/${encodeURIComponent(answer.key_hash)}`);
  } catch (cause) {
    if (!(cause instanceof Failure && cause.status === 404)) throw cause;
    toast({ kind: 'warn', text: t.palette.noKey });
  }
}

/** Objects that match, from the second letter on; an older answer never replaces a newer. */
function useSearch(text: string): Found[] {
  const [found, setFound] = useState<Found[]>([]);
  useEffect(() => {
    const kind = kindOf(text);
    if (text.length < 2 || kind.key) {
      setFound([]); // what may be a key is not sent
      return;
    }
    const stop = new AbortController();
    const wait = setTimeout(() => {
      request<{ results: Found[] }>('GET', '/api/search', { query: { q: text }, signal: stop.signal })
        .then((answer) => setFound(answer.results))
        .catch(() => {}); // places can still be gone to
    }, 80);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [text]);
  return found;
}
