// Small things that have no better place.
import { useEffect, useState, useSyncExternalStore } from 'react';

/** What the server wrote into the HTML. */
const html = typeof document === 'undefined' ? undefined : document.documentElement; // unit tests have none

/** The path below which the admin is reached, with a slash at both ends. */
export const base = html?.dataset.base || '/';
export const version = html?.dataset.version || 'dev';

/** A value outside of React that components can follow. */
export interface Store<T> {
  get(): T;
  set(next: T): void;
  subscribe(listener: () => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** A value once it has stayed the same for some milliseconds: what is typed asks the server when it pauses. */
export function useSettled<T>(value: T, pause: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pause);
    return () => clearTimeout(timer);
  }, [value, pause]);
  return settled;
}

/** Joins class names, leaving out what is false. */
export function cx(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(' ');
}

/** 128 random bits as hexadecimal digits: crypto.randomUUID wants a secure context. */
export function randomID(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
}

/** Whether two JSON values are equal, whatever the order of members. */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => name in b && same(a[name as never], b[name as never]));
}

/** Storage that may be switched off or full: then nothing is kept. */
export const kept = {
  get(area: 'local' | 'session', name: string): string | null {
    try {
      return (area === 'local' ? localStorage : sessionStorage).getItem(name);
    } catch {
      return null;
    }
  },
  set(area: 'local' | 'session', name: string, value: string | null): void {
    try {
      const storage = area === 'local' ? localStorage : sessionStorage;
      if (value === null) storage.removeItem(name);
      else storage.setItem(name, value);
    } catch {
      // not kept
    }
  },
};

let reloading = false;

/** Loads the page again, without a question about drafts, which are kept. A secret that is shown once still asks. */
export function reload(): void {
  reloading = true;
  location.reload();
}

export const isReloading = () => reloading;
