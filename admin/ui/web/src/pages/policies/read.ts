// What the pages of policies read and write.
import type { components } from '../../api.gen';
import { api, data, request, respond } from '../../api/client';
import type { Problem } from '../../api/failure';
import { parse, pretty, setAt, type Base, type Publishing } from '../../parts/draft';
import type { ListQuery, Rows } from '../../parts/ListPage';
import type { Choice } from '../../parts/Picker';
import { ownPath } from './paths';

type Schemas = components['schemas'];
export type PolicyRow = Schemas['PolicyRow'];
export type KeyRow = Schemas['KeyRow'];

const root = '/api/portal/policies';
const at = (id: string) => `${root}/${encodeURIComponent(id)}`;

/** A page of the list. */
export async function loadRows(asked: ListQuery, signal: AbortSignal): Promise<Rows<PolicyRow>> {
  const list = await request<Schemas['PolicyRows']>('GET', root, { query: { view: 'row', page_size: 50, p: asked.page, q: asked.q, sort: asked.sort, ...asked.filters }, signal });
  return { rows: list.rows, pages: list.pages, total: list.total, capped: list.total_capped };
}

/** The keys that have a policy. */
export async function loadKeys(id: string, asked: ListQuery, signal: AbortSignal): Promise<Rows<KeyRow>> {
  const list = await request<Schemas['KeyRows']>('GET', '/api/keys', { query: { view: 'row', policy_id: id, page_size: 50, p: asked.page, q: asked.q, ...asked.filters }, signal });
  return { rows: list.rows, pages: list.pages, total: list.total, capped: list.total_capped };
}

/** The policy as it was sent, with its version and without the second form of its access rights. */
export async function loadText(id: string, signal?: AbortSignal): Promise<Base> {
  const answer = await respond('GET', at(id), { signal });
  const sent = await answer.text();
  const value = JSON.parse(sent) as Record<string, unknown>;
  const once = value.access_rights && value.access_rights_array ? setAt(sent, ['access_rights_array'], undefined) : sent;
  return { text: pretty(once), etag: answer.headers.get('ETag') ?? '' };
}

/** The id of a policy in a batch. */
export function idOf(text: string): string {
  const value = parse(text).tree && (JSON.parse(text) as { id?: string; _id?: string });
  return (value && (value.id || value._id)) || 'new-policy';
}

/** The text with an id, which a change has to have; lines stay as they are. */
function withID(text: string): string {
  const value = parse(text).tree && (JSON.parse(text) as { id?: string; _id?: string });
  if (!value || value.id || value._id) return text;
  const one = setAt(text, ['id'], undefined);
  return one.replace('{', Object.keys(value).some((name) => name !== 'id') ? '{"id":"new-policy",' : '{"id":"new-policy"');
}

/** A change as a batch. */
export const batchOf = (text: string) => `{"policies":[${withID(text)}]}`;

/** What a change comes to. */
export const loadEffect = (text: string, signal: AbortSignal) => request<Schemas['Effect']>('POST', '/api/config/effect', { body: batchOf(text), signal });

/** What is wrong with a policy. */
export async function validate(text: string, signal: AbortSignal): Promise<Problem[]> {
  const answer = await request<Schemas['Envelope']>('POST', '/api/config/effect', { body: batchOf(text), query: { report: true }, signal });
  return (answer.Problems ?? []).map((one) => ({ ...one, path: ownPath(one.path) }));
}

const revision = async () => (await request<{ revision: number }>('GET', '/api/config')).revision;

/** Replaces a policy. */
export async function save(id: string, it: Publishing): Promise<{ revision?: number }> {
  await request('PUT', at(id), { body: it.text, query: { reason: it.reason }, headers: it.etag ? { 'If-Match': it.etag } : {}, once: it.once });
  return { revision: await revision().catch(() => undefined) };
}

/** Creates a policy; the answer's message is its id. */
export async function create(it: Publishing): Promise<{ id: string; revision?: number }> {
  const answer = await request<Schemas['Envelope']>('POST', root, { body: it.text, query: { reason: it.reason }, once: it.once });
  return { id: answer.ID || answer.Message, revision: await revision().catch(() => undefined) };
}

export const remove = (id: string) => request('DELETE', at(id));

export const loadUses = (id: string, signal: AbortSignal) => data(api.GET('/api/portal/policies/{id}/uses', { params: { path: { id } }, signal }));

export const loadHistory = (id: string, page: number, signal: AbortSignal) => request<Schemas['ObjectHistory']>('GET', `${at(id)}/history`, { query: { p: page }, signal });

const apiRows = (query: Record<string, string | number>, signal: AbortSignal) => request<Schemas['ApiRows']>('GET', '/api/apis', { query: { view: 'row', ...query }, signal });

/** APIs to choose from. */
export async function findAPIs(q: string, signal: AbortSignal): Promise<Choice[]> {
  const found = await apiRows({ q, page_size: 10 }, signal);
  return found.rows.map((row) => ({ value: row.api_id, label: row.name || row.api_id, note: row.domain + row.listen_path }));
}

/** Ids of the GraphQL APIs; undefined: there are too many to read them all. */
export async function graphqlAPIs(signal: AbortSignal): Promise<string[] | undefined> {
  const found = await apiRows({ kind: 'graphql', page_size: 100 }, signal);
  return found.pages > 1 ? undefined : found.rows.map((row) => row.api_id);
}

/** The schema of an API; '' if it has none. */
export async function loadSchema(id: string, signal: AbortSignal): Promise<string> {
  const definition = await request<{ graphql?: { enabled?: boolean; schema?: string } }>('GET', `/api/apis/${encodeURIComponent(id)}`, { signal });
  return (definition.graphql?.enabled && definition.graphql.schema) || '';
}

/** How often the fields of a type were read, since the gateways were started. */
export const loadReads = (id: string, type: string, signal: AbortSignal) =>
  data(api.GET('/api/apis/{id}/usage/fields', { params: { path: { id }, query: { type } }, signal }));
