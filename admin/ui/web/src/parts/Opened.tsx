import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './Loaded';
import { Page } from './Page';

/** The page of an object. Until it has been read, a page with a title of its own says so, or why it cannot be. */
export function Opened<T>(p: { query: UseQueryResult<T>; title: string; what?: string; children: (data: T) => ReactNode }) {
  if (p.query.data !== undefined) return p.children(p.query.data);
  return (
    <Page title={p.title}>
      <Loaded query={p.query} what={p.what ?? p.title}>
        {() => null}
      </Loaded>
    </Page>
  );
}
