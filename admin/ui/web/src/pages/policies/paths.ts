// Paths of members of a policy, as the server writes them, and the tabs that have their fields.

/** A path in a change with one policy, as a path in that policy. */
export const ownPath = (path: string) => path.replace(/^policies\[(?:\d+|"(?:[^"\\]|\\.)*")\]\.?/, '');

/** The path of an entry of the access rights. */
export const accessPath = (id: string) => `access_rights[${JSON.stringify(id)}]`;

/** The API of a path in the access rights. */
export function apiOf(path: string): string | undefined {
  const found = /^access_rights\[("(?:[^"\\]|\\.)*")\]/.exec(path)?.[1];
  try {
    return found && (JSON.parse(found) as string);
  } catch {
    return undefined;
  }
}

const inForm = new Set(
  'id name state active is_inactive enforcement key_expires_in tags rate per quota_max quota_renewal_rate quota_renewal_calendar quota_renewal_zone max_query_depth throttle_interval throttle_retry_limit max_query_aliases max_query_root_fields max_query_directives max_query_tokens max_query_cost partitions'.split(' '),
);

/** The tab that has the field of a path, or the raw text. */
export function tabOf(path: string): string {
  if (path.startsWith('access_rights')) return /\]\.(restricted_types|allowed_types|field_access_rights)/.test(path) ? 'fields' : 'apis';
  return inForm.has(path.split(/[.[]/)[0]!) ? 'overview' : 'raw';
}
