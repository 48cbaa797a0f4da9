// How pages read and write: React Query with the rules of this UI.
import { QueryClient, useMutation, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { Failure } from './failure';

/** The numbers of GET /api/pulse that queries can depend on. */
export type Pulsed = 'revision' | 'generation' | 'gateways' | 'up_to_date' | 'pending_requests' | 'failed_deliveries' | 'usage_until';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      // Refusals do not change by asking again; 429 and 503 are counted down by the error panel.
      retry: (count, failure) => failure instanceof Failure && failure.status === 0 && count < 2,
      retryDelay: (count) => 500 * 2 ** count,
    },
    mutations: { retry: false },
  },
});

/**
 * Reads something. The function gets an abort signal. `on` names the numbers of the pulse
 * after whose change it is read again.
 */
export function useRead<T>(
  key: readonly unknown[],
  read: (signal: AbortSignal) => Promise<T>,
  o: { on?: Pulsed[]; enabled?: boolean; every?: number; keep?: boolean; staleTime?: number } = {},
): UseQueryResult<T> {
  return useQuery<T>({
    queryKey: key,
    queryFn: ({ signal }) => read(signal),
    enabled: o.enabled ?? true,
    refetchInterval: o.every ?? false,
    staleTime: o.staleTime,
    // What is there stays until the next answer: filters and pages do not flicker.
    placeholderData: o.keep ? (before: unknown) => before as never : undefined,
    meta: { on: o.on ?? [] },
  });
}

/** Writes something, then reads again what begins with one of the keys. */
export function useWrite<V, T>(write: (value: V) => Promise<T>, o: { changes?: (readonly unknown[])[]; done?: (result: T, value: V) => void } = {}) {
  return useMutation<T, Error, V>({
    mutationFn: write,
    onSuccess: async (result, value) => {
      o.done?.(result, value);
      await Promise.all((o.changes ?? []).map((queryKey) => queryClient.invalidateQueries({ queryKey })));
    },
  });
}
