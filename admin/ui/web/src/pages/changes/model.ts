import { request } from '../../api';
import { text } from './text';

export interface Summary {
  kind: string;
  id: string;
  name: string;
  action: string;
}

export interface Revision {
  revision: number;
  author: string;
  source: string;
  reason: string;
  at: string;
  summary: Summary[] | null;
}

export interface Member {
  path: string;
  before?: unknown;
  after?: unknown;
}

export interface Difference {
  kind: string;
  id: string;
  action: string;
  changes: Member[] | null;
}

export interface Diff {
  from: number;
  to: number;
  objects: Difference[] | null;
}

export interface Gateway {
  name: string;
  group: string;
  version: string;
  revision: string;
  error: string;
  ip: string;
  seen_at: string;
  up_to_date: boolean;
  tags: string[] | null;
}

export const readDiff = (revision: number | string, against: string | number | undefined, signal: AbortSignal) =>
  request<Diff>('GET', `/api/config/revisions/${revision}/diff`, { query: { against }, signal });

export const readGateways = (signal: AbortSignal) => request<{ gateways: Gateway[] | null; revision: string }>('GET', '/api/gateways', { signal });

/** What a revision did, in a few words. */
export function whatOf(summary: Summary[] | null): string {
  const all = summary ?? [];
  if (all.length === 0) return text.nothing;
  const [first] = all as [Summary];
  const one = text.what(text.kinds[first.kind] ?? first.kind, first.name || first.id, text.actions[first.action] ?? first.action);
  return all.length > 1 ? `${one} ${text.others(all.length - 1)}` : one;
}

/** A value as JSON, cut where a sentence would become too long. */
export function short(value: unknown): string {
  const all = JSON.stringify(value) ?? text.member.absent;
  return all.length > 80 ? `${all.slice(0, 79)}…` : all;
}

/** A change of a member as a sentence. */
export function sentence(member: Member): string {
  const path = member.path || text.member.whole;
  if (member.after === undefined) return text.gone(path);
  if (member.before === undefined) return text.set(path, short(member.after));
  return text.was(path, short(member.before), short(member.after));
}
