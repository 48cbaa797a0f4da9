// What the pages of the portal's management share: the objects of /api/portal as they
// come, and the calls that several pages make.
import { useState } from 'react';
import { Failure, request, respond, useRead } from '../../api';
import { pretty, type Base } from '../../parts/draft';
import type { Choice } from '../../parts/Picker';

export interface List<T> {
  Data: T[];
  Pages: number;
}

/** The answer of a change. */
export interface Done {
  Message: string;
  ID?: string;
  Meta?: unknown;
}

export interface Client {
  client_id: string;
  redirect_uri: string;
  app_description: string;
  use_case: string;
  date_created: string;
}

export interface Developer {
  id: string;
  email: string;
  date_created: string;
  inactive: boolean;
  keys: Record<string, string[]>;
  fields: Record<string, string>;
  oauth_clients: Record<string, Client[]>;
  password_max_days: number;
  password_updated?: string;
  last_login_date?: string;
  verified?: boolean;
  nonce: string;
  sso_key: string;
}

export interface Configuration {
  id: string;
  org_id: string;
  signup_fields: string[];
  key_request_fields: string[];
  require_key_approval: boolean;
  redirect_on_key_request: boolean;
  redirect_to: string;
  redirect_hosts: string[];
  enable_multi_selection: boolean;
  disable_login: boolean;
  disable_signup: boolean;
  disable_auto_login: boolean;
  disable_verification: boolean;
  catalogue_login_only: boolean;
  oauth_usage_limit: number;
  email: string;
  override: boolean;
  HashKeys: boolean;
  mail_options: { mail_from_name: string; mail_from_email: string; email_copy: Record<LetterName, Letter> };
  event_options: Record<EventName, { webhook: string; email: string }>;
}

export type LetterName = 'welcome_email' | 'key_email' | 'reset_password_email';
export type EventName = 'api_event' | 'key_event' | 'key_request_event';

export interface Letter {
  enabled: boolean;
  subject: string;
  body: string;
  sign_off: string;
  hide_token_data: boolean;
}

export interface Entry {
  id?: string;
  name: string;
  short_description: string;
  long_description: string;
  show: boolean;
  api_id: string;
  policy_id: string;
  documentation: string;
  version: string;
  is_keyless: boolean;
  auth_type: string;
  fields: Record<string, string>;
  config?: Partial<Configuration>;
}

export type RequestState = 'pending' | 'approved' | 'rejected';

export interface KeyRequest {
  id: string;
  for_plan: string;
  apply_policies: string[];
  remove_policies: string[];
  by_user: string;
  fields: Record<string, unknown>;
  date_created: string;
  certificate: string;
  jwt_secret: string;
  oauth_info: { redirect_uri: string };
  portal_developer?: Developer | null;
  catalogue_entry?: Entry | null;
  key_id?: string;
  state: RequestState;
  reason?: string;
  decided_by?: string;
  decided_at?: string;
}

/** What a request asks for, as ids of policies. */
export const policiesOf = (r: KeyRequest): string[] => (r.apply_policies?.length ? r.apply_policies : r.for_plan ? [r.for_plan] : []);

/** A credential that is shown once: a key, or a name and its password. */
export interface Credential {
  RawKey: string;
  Password: string;
  key_id?: string;
}

/** The lines of a credential, as they are stored. */
export const linesOf = (c: Credential): string => [c.RawKey, c.Password].filter(Boolean).join('\n');

export interface Allowance {
  api_id: string;
  rate: number;
  per: number;
  quota_max: number;
  quota_used: number | null;
  quota_remaining: number | null;
  quota_renews: string;
}

/** A key as its developer sees it. */
export interface KeyView {
  key_id: string;
  auth_type: 'authToken' | 'basic' | 'oauth';
  alias: string;
  state: 'active' | 'inactive' | 'expired' | 'unusable';
  policies: { id: string; name: string }[];
  apis: Allowance[];
  request_id: string;
  date_created: string;
  expires: string;
  grace_until: string;
}

export interface Delivery {
  id: string;
  kind: 'webhook' | 'hook' | 'letter';
  target: string;
  developer_id: string;
  event: string;
  state: 'pending' | 'sending' | 'done' | 'failed' | 'kept';
  attempts: number;
  status: number;
  error: string;
  next_attempt?: string;
  last_attempt?: string;
  date_created: string;
  date_finished?: string;
  tries?: { at: string; status: number; milliseconds?: number; error: string }[];
  payload?: string;
}

export const portal = '/api/portal';
export const one = (path: string, id: string) => `${portal}/${path}/${encodeURIComponent(id)}`;

/** A page of a list, with 50 rows. */
export async function readList<T>(path: string, query: Record<string, string | number | undefined>, signal: AbortSignal): Promise<{ rows: T[]; pages: number }> {
  const list = await request<List<T>>('GET', `${portal}/${path}`, { query: { page_size: 50, ...query }, signal });
  return { rows: list.Data ?? [], pages: list.Pages };
}

/** An object as it was sent, with its version, for an editing page. */
export async function readBase(path: string, signal?: AbortSignal): Promise<Base> {
  const answer = await respond('GET', path, { signal });
  return { text: pretty(await answer.text()), etag: answer.headers.get('ETag') ?? '' };
}

/** Replaces an object by the text of a draft. */
export const replace = (path: string) => ({ text, etag }: { text: string; etag: string }) => request<Done>('PUT', path, { body: text, headers: { 'If-Match': etag } });

/** Names of policies by their ids; an id that is not there stands for itself. */
export function usePolicyNames(ids: string[]): (id: string) => string {
  const wanted = [...new Set(ids.filter(Boolean))].sort();
  const query = useRead(
    ['policies', 'names', wanted],
    async (signal) => {
      const list = await request<{ rows: { id: string; name: string }[] }>('GET', `${portal}/policies`, { query: { view: 'row', policy_ids: wanted.join(','), page_size: 100 }, signal });
      return Object.fromEntries(list.rows.map((policy) => [policy.id, policy.name]));
    },
    { enabled: wanted.length > 0, on: ['revision'], keep: true },
  );
  return (id) => query.data?.[id] || id;
}

interface Rows {
  rows: { id?: string; api_id?: string; name: string; listen_path?: string; state?: string; auth?: string[] }[];
}

/** Finds policies for a picker. */
export async function searchPolicies(q: string, signal: AbortSignal): Promise<Choice[]> {
  const found = await request<Rows>('GET', `${portal}/policies`, { query: { view: 'row', q, page_size: 10 }, signal });
  return found.rows.map((row) => ({ value: row.id!, label: row.name, note: row.state === 'active' ? row.id! : `${row.id} · ${row.state}` }));
}

/** Finds APIs for a picker. */
export async function searchAPIs(q: string, signal: AbortSignal): Promise<Choice[]> {
  const found = await request<Rows>('GET', '/api/apis', { query: { view: 'row', q, page_size: 10 }, signal });
  return found.rows.map((row) => ({ value: row.api_id!, label: row.name, note: row.listen_path }));
}

/** Finds developers for a picker, by the beginning of their address. */
export async function searchDevelopers(q: string, signal: AbortSignal): Promise<Choice[]> {
  const found = await request<{ rows: { id: string; email: string }[] }>('GET', `${portal}/developers`, { query: { view: 'row', q, page_size: 10 }, signal });
  return found.rows.map((row) => ({ value: row.id, label: row.email }));
}

/** A document about an API; its text is base64 on the wire. */
export interface Document {
  id: string;
  api_id: string;
  name: string;
  doc_type: 'openapi' | 'graphql' | 'markdown';
  documentation: string;
  size: number;
  created_at: string;
  updated_at: string;
}

/** Finds documents for a picker, by the beginning of their name; a whole id is found too. */
export async function searchDocuments(q: string, signal: AbortSignal): Promise<Choice[]> {
  if (/^[0-9a-f]{32}$/.test(q)) {
    const found = await request<Document>('GET', one('documentation', q), { signal });
    return [{ value: found.id, label: found.name, note: found.doc_type }];
  }
  const found = await readList<Document>('documentation', { q, page_size: 10 }, signal);
  return found.rows.map((row) => ({ value: row.id, label: row.name, note: row.doc_type }));
}

/**
 * A call whose answer holds a secret: the answer goes to `done` and is kept nowhere else,
 * not in the cache of mutations either.
 */
export function useSecretCall() {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const run = async <T,>(call: () => Promise<T>, done: (answer: T) => void): Promise<void> => {
    setBusy(true);
    setFailure(undefined);
    try {
      done(await call());
    } catch (cause) {
      setFailure(cause);
    } finally {
      setBusy(false);
    }
  };
  return { busy, failure, run, clear: () => setFailure(undefined) };
}

/** Whether the call may have been carried out although it failed: the answer was lost. */
export const wasLost = (failure: unknown): boolean => failure instanceof Failure && (failure.status === 0 || failure.status === 504);
