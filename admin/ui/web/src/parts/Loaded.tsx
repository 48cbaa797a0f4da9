import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorPanel, StaleNote } from './ErrorPanel';
import { Skeleton } from './Skeleton';
import { ago } from './Time';

/** Draws what was read: a skeleton or what `waiting` is before, an error in its place, or the data with its age. */
export function Loaded<T>(p: { query: UseQueryResult<T>; what?: string; lines?: number; waiting?: ReactNode; children: (data: T) => ReactNode }) {
  const { query } = p;
  const retry = () => void query.refetch();
  if (query.data === undefined) {
    if (query.isError) return <ErrorPanel failure={query.error} what={p.what} retry={retry} auto />;
    return p.waiting ?? <Skeleton lines={p.lines} />;
  }
  return (
    <>
      {query.isError && <StaleNote failure={query.error} age={ago(query.dataUpdatedAt)} retry={retry} />}
      {p.children(query.data)}
    </>
  );
}
