// Keys. Single letters never fire in fields, editors or with modifiers, and can be
// switched off (WCAG 2.1.4).
import { useEffect, useRef } from 'react';
import { createStore, kept } from '../lib';

export interface Shortcut {
  /** 'j', 'g a' (one after the other), 'Mod+s', 'Escape', 'Enter', '?'. */
  keys: string;
  /** What it does, for the help. */
  label: string;
  run: (event: KeyboardEvent) => void;
  /** Works in fields as well. Those with Mod always do. */
  inFields?: boolean;
}

export const shortcuts = createStore<Shortcut[]>([]);
export const singleLetters = createStore(kept.get('local', 'single-letters') !== 'off');

export function setSingleLetters(on: boolean): void {
  kept.set('local', 'single-letters', on ? null : 'off');
  singleLetters.set(on);
}

/** Adds shortcuts while the component is there. The last one added wins. */
export function useShortcuts(list: (Shortcut | false | undefined)[]): void {
  const now = useRef(list);
  useEffect(() => {
    now.current = list;
  });
  const names = list.map((one) => (one ? `${one.keys}\n${one.label}\n${one.inFields ?? ''}` : '')).join('\n\n');
  useEffect(() => {
    const mine = now.current.flatMap((one, at): Shortcut[] => {
      const run = (event: KeyboardEvent) => {
        const newest = now.current[at]; // the closure of the last drawing
        if (newest) newest.run(event);
      };
      return one ? [{ ...one, run }] : [];
    });
    shortcuts.set([...shortcuts.get(), ...mine]);
    return () => shortcuts.set(shortcuts.get().filter((one) => !mine.includes(one)));
  }, [names]);
}

let first = ''; // of a sequence
let forget: ReturnType<typeof setTimeout> | undefined;

/** Whether an event comes from where people type. In a shadow root the target is the host. */
export function inField(event: Event): boolean {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches('input:not([type=checkbox], [type=radio]), textarea, select');
}

function nameOf(event: KeyboardEvent): string {
  const mod = event.ctrlKey || event.metaKey;
  const key = event.key.length === 1 ? (mod ? event.key.toLowerCase() : event.key) : event.key;
  return (mod ? 'Mod+' : '') + key;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = nameOf(event);
  const field = inField(event);
  const layered = document.querySelector('[role=dialog][data-modal]') !== null;
  const find = (keys: string) =>
    shortcuts.get().findLast((one) => {
      if (one.keys !== keys) return false;
      if (keys.startsWith('Mod+')) return true;
      if (field && !one.inFields) return false;
      if (layered && !one.inFields) return false;
      return singleLetters.get() || (keys.length > 1 && !keys.includes(' '));
    });
  const found = (first && find(`${first} ${name}`)) || find(name);
  clearTimeout(forget);
  if (found) {
    // A link or button that has the focus keeps its Enter.
    if (name === 'Enter' && document.activeElement?.matches('a, button, summary')) return;
    first = '';
    event.preventDefault();
    found.run(event);
    return;
  }
  const begins = !field && !layered && singleLetters.get() && shortcuts.get().some((one) => one.keys.startsWith(`${name} `));
  first = begins ? name : '';
  forget = setTimeout(() => (first = ''), 1500);
}

export function startShortcuts(): void {
  document.addEventListener('keydown', onKey);
}

/** ⌘ on a Mac, Ctrl elsewhere. */
export const modKey = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl ';
