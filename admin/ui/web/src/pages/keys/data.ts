import { request } from '../../api';
import type { Key } from './session';

export interface KeyRow {
  key_hash: string;
  alias: string;
  active: boolean;
  expires_at: string | null;
  apis: number;
  policies: string[];
  policy_count: number;
  labels: string[];
  developer_id: string;
  developer_email: string;
  updated_at: string;
  changed_by: string;
  calls_24h: number;
  errors_24h: number;
}

const path = (hash: string, more = '') => `/api/keys/${encodeURIComponent(hash)}${more}`;
const query = { hashed: 'true' };

export const getKey = (hash: string, signal?: AbortSignal) => request<Key>('GET', path(hash), { query, signal });
export const makeKey = (session: object, once: string) => request<Key>('POST', '/api/keys', { body: session, once });
export const rotateKey = (hash: string, grace: string, once: string) => request<Key>('POST', path(hash, '/rotate'), { query, body: { grace }, once });
export const endFormer = (hash: string) => request('DELETE', path(hash, '/rotate'), { query });
export const resetQuota = (hash: string) => request('POST', path(hash, '/reset_quota'), { query, body: {} });
export const revokeKey = (hash: string) => request('DELETE', path(hash), { query });
export const setPolicies = (hash: string, policies: string[]) => request('PUT', path(hash, '/policies'), { query, body: { apply_policies: policies } });

export interface APIRow {
  api_id: string;
  name: string;
  domain: string;
  listen_path: string;
  kind: string;
}

export const findAPIs = async (q: string, signal?: AbortSignal) => (await request<{ rows: APIRow[] }>('GET', '/api/apis', { query: { view: 'row', page_size: 20, q }, signal })).rows;

export interface PolicyRow {
  id: string;
  name: string;
  state: string;
  apis: number;
}

export const findPolicies = (q: string, signal?: AbortSignal) =>
  request<{ rows: PolicyRow[]; total: number }>('GET', '/api/portal/policies', { query: { view: 'row', page_size: 20, q }, signal });
