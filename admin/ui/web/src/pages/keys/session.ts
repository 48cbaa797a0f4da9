// The session of a key, as pages read it.

export interface Limits {
  rate?: number;
  per?: number;
  quota_max?: number;
  quota_remaining?: number;
  quota_renews?: number;
  quota_renewal_rate?: number;
  max_query_depth?: number;
}

export interface Session extends Limits {
  alias?: string;
  is_inactive?: boolean;
  active?: boolean;
  expires?: number;
  date_created?: string;
  apply_policies?: string[];
  apply_policy_id?: string;
  tags?: string[];
  access_rights?: Record<string, { api_id?: string; api_name?: string; limit?: Limits | null }>;
  rotated_keys?: { key_hash: string; retires?: number }[];
}

export interface Key {
  key?: string;
  key_hash: string;
  data: Session;
}

/** A quota with what is left of it, by the scope that it is counted in. */
export interface Scope {
  name: string;
  api?: string;
  max: number;
  used: number;
  renews?: number;
}

/** The quotas of a session: its own, and those of single APIs. */
export function scopesOf(session: Session): Scope[] {
  const all: Scope[] = [];
  const add = (limits: Limits | null | undefined, name: string, api?: string) => {
    if (!limits || !limits.quota_max || limits.quota_max <= 0) return;
    const left = Math.min(Math.max(0, limits.quota_remaining ?? limits.quota_max), limits.quota_max);
    all.push({ name, api, max: limits.quota_max, used: limits.quota_max - left, renews: limits.quota_renews || undefined });
  };
  add(session, '');
  for (const [id, access] of Object.entries(session.access_rights ?? {})) add(access.limit, access.api_name || id, id);
  return all;
}
