import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

export type Search = Record<string, string | undefined>;

/**
 * The part of the address behind the question mark, and how to change it: what is named
 * changes, '' and undefined remove. It takes no step in the history unless asked to.
 */
export function useURLState(): [Search, (change: Search, o?: { push?: boolean }) => void] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const change = useCallback(
    (next: Search, o: { push?: boolean } = {}) => {
      void navigate({
        to: '.',
        search: ((now: Search) => Object.fromEntries(Object.entries({ ...now, ...next }).filter(([, value]) => value))) as never,
        replace: !o.push,
      });
    },
    [navigate],
  );
  return [search, change];
}
