// What the pages of APIs read and write.
import type { components } from '../../api.gen';
import { api, data, request, respond } from '../../api/client';
import type { Problem } from '../../api/failure';
import type { Base, Publishing } from '../../parts/draft';
import { parse, pretty, setAt } from '../../parts/draft';
import type { ListQuery, Rows } from '../../parts/ListPage';

type Schemas = components['schemas'];
export type APIRow = Schemas['ApiRow'];

/** A page of the list. */
export async function loadRows(asked: ListQuery, signal: AbortSignal): Promise<Rows<APIRow>> {
  const list = await request<Schemas['ApiRows']>('GET', '/api/apis', {
    query: { view: 'row', page_size: 50, p: asked.page, q: asked.q, sort: asked.sort, ...asked.filters },
    signal,
  });
  return { rows: list.rows, pages: list.pages, total: list.total, capped: list.total_capped };
}

const at = (id: string) => `/api/apis/${encodeURIComponent(id)}`;

/** The definition as it was sent, with its version. */
export async function loadText(id: string, signal?: AbortSignal): Promise<Base> {
  const answer = await respond('GET', at(id), { signal });
  return { text: pretty(await answer.text()), etag: answer.headers.get('ETag') ?? '' };
}

/** What is wrong with a definition. */
export async function validate(text: string, signal: AbortSignal): Promise<Problem[]> {
  const answer = await request<Schemas['Envelope']>('POST', '/api/apis/validate', { body: text, query: { report: true }, signal });
  return answer.Problems ?? [];
}

/** The number of the revision that is in force. */
const revision = async () => (await request<{ revision: number }>('GET', '/api/config')).revision;

/** Replaces a definition. */
export async function save(id: string, it: Publishing): Promise<{ revision?: number }> {
  await request('PUT', at(id), { body: it.text, query: { reason: it.reason }, headers: it.etag ? { 'If-Match': it.etag } : {}, once: it.once });
  return { revision: await revision().catch(() => undefined) };
}

/** Creates an API. */
export async function create(it: Publishing): Promise<{ id: string; revision?: number }> {
  const answer = await request<{ ID: string }>('POST', '/api/apis', { body: it.text, query: { reason: it.reason }, once: it.once });
  return { id: answer.ID, revision: await revision().catch(() => undefined) };
}

export const remove = (id: string) => request('DELETE', at(id), { query: { force: true } });

export const loadUses = (id: string, signal: AbortSignal) => data(api.GET('/api/apis/{id}/uses', { params: { path: { id } }, signal }));

/** Counted calls of an API. */
export function loadUsage(id: string, query: Record<string, string>, signal: AbortSignal): Promise<Schemas['UsageReport']> {
  return request('GET', '/api/usage', { query: { api: id, ...query }, signal });
}

export function loadRefused(id: string, signal: AbortSignal): Promise<Schemas['UsageReport']> {
  return request('GET', '/api/usage/rejections', { query: { api: id }, signal });
}

/** How often the GraphQL operations of an API ran, since its gateways were started. */
export const loadOperations = (id: string, signal: AbortSignal) => data(api.GET('/api/apis/{id}/usage/operations', { params: { path: { id } }, signal }));

export const loadHistory = (id: string, page: number, signal: AbortSignal) => request<Schemas['ObjectHistory']>('GET', `${at(id)}/history`, { query: { p: page }, signal });

export const schemaStatus = (id: string, signal: AbortSignal) => data(api.GET('/api/apis/{id}/schema/status', { params: { path: { id } }, signal }));
export const schemaHistory = (id: string, signal: AbortSignal) => data(api.GET('/api/apis/{id}/schema/history', { params: { path: { id } }, signal }));

/** Fetches the upstream's schema, and stores it with `apply`. */
export const syncSchema = (id: string, o: { apply: boolean; force?: boolean }) =>
  request<Schemas['SyncAnswer']>('POST', `${at(id)}/schema/sync`, { query: { apply: o.apply, force: o.force } });

export const checkSchema = (schema: string, signal: AbortSignal) => request<Schemas['SchemaProblems']>('POST', '/api/graphql/check', { body: { schema }, signal });

export const probe = (url: string) => request<Schemas['Found']>('POST', '/api/apis/probe', { body: { url } });

/** What a change comes to. */
export const loadEffect = (text: string, signal: AbortSignal) => request<Schemas['Effect']>('POST', '/api/config/effect', { body: batchOf(text), signal });

/** A change as a batch. A new API gets an id for it. */
export const batchOf = (text: string) => `{"apis":[${withID(text)}]}`;

function withID(text: string): string {
  const value = parse(text).tree && (JSON.parse(text) as { api_id?: string; id?: string });
  return !value || value.api_id ? text : setAt(text, ['api_id'], 'new-api');
}
