import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { offsetOf } from './draft/merge';
import { fieldAt, focusField } from './ErrorPanel';
import { useURLState } from './urlState';

/**
 * Puts the focus into the field that the address names by `at`, such as ?at=proxy.target_url,
 * as soon as it is there. A page of tabs that is opened without one goes to that of the field.
 */
export function useFieldInAddress(tabs?: { home: string; open: string | undefined; of: (path: string) => string }): void {
  const [{ at }] = useURLState();
  const navigate = useNavigate();
  const wanted = at && tabs && tabs.open === undefined ? tabs.of(at) : undefined;
  const home = tabs?.home;
  const open = tabs?.open;
  useEffect(() => {
    if (!at) return;
    if (wanted !== undefined && wanted !== 'overview') {
      void navigate({ to: `${home}/${wanted}`, search: ((now: object) => now) as never, replace: true });
      return;
    }
    const look = () => {
      const field = fieldAt(at);
      if (field) focusField(field);
      return field !== null;
    };
    if (look()) return;
    const watch = new MutationObserver(() => {
      if (look()) stop();
    });
    const stop = () => {
      watch.disconnect();
      removeEventListener('keydown', stop, true);
      removeEventListener('pointerdown', stop, true);
    };
    watch.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ['data-path'] });
    // Once the user has typed or clicked, the focus stays where it is.
    addEventListener('keydown', stop, true);
    addEventListener('pointerdown', stop, true);
    return stop;
  }, [at, open, wanted]);
}

/** Where the member that the address names stands in a text, for the editor of that text. */
export function useOffsetInAddress(text: string): number | undefined {
  const [{ at }] = useURLState();
  const [first] = useState(() => (at ? offsetOf(text, at) : undefined)); // what is typed moves no cursor
  return first;
}
