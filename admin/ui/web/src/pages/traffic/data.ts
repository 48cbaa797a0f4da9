// What pages read of usage and refusals.
import { request } from '../../api';
import type { UsageRow } from './range';

export type { UsageRow } from './range';

export interface Limit {
  kind: string;
  max: number;
  period?: string;
  remaining: number;
  reset_at?: string;
}

export interface Refusal {
  id: string;
  at: string;
  api_id: string;
  api_name?: string;
  version?: string;
  key_hash?: string;
  key?: string;
  stage: string;
  status: number;
  reason: string;
  message?: string;
  method?: string;
  path?: string;
  client?: string;
  policy?: string;
  revision?: string;
  limits?: Limit[];
  errors?: string;
  upstream?: string;
  cause?: string;
  gateway?: string;
}

export interface Refusals {
  Data: Refusal[];
  Pages: number;
  total: number;
  counts: { reason: string; calls: number }[];
}

export interface Usage {
  from: string;
  to: string;
  step: string;
  totals: UsageRow;
  Data: UsageRow[];
  Pages: number;
}

export type Query = Record<string, string | number | undefined>;

export const refusals = (query: Query, signal?: AbortSignal) => request<Refusals>('GET', '/api/refusals', { query, signal });
export const usage = (query: Query, signal?: AbortSignal) => request<Usage>('GET', '/api/usage', { query: { page_size: 500, ...query }, signal });
