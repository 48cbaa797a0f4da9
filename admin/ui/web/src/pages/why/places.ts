// Where the rules of an explanation are set, as places in the UI.

export interface Fact {
  rule: string;
  value: string;
  seen?: string;
  from?: string;
}

/** One of those who set a value, and the page that has its field. */
export interface Place {
  name: string;
  to?: string;
  search?: Record<string, string>;
  /** Its address and the member in REST, for GET …/origin. */
  member?: { of: string; path: string };
}

const fieldRules = /^(restricted_types|allowed_types|field_access_rights) (\S+)$/;

/** Who set the value of a fact: a policy, the definition of the API, the key, or a setting. */
export function placesOf(fact: Fact, of: { api?: string; key?: string }): Place[] {
  const from = fact.from ?? '';
  const policies = from.split(/, (?:or )?/).map((one) => /^(the entry for the API in )?policy (\S+)$/.exec(one));
  if (from && policies.every((one) => one !== null)) return policies.map(([name, entry, id]) => ({ name: name!, ...inPolicy(fact, id!, entry !== undefined, of.api) }));
  if (/^(the )?definition$/.test(from) && of.api) {
    const path = pathIn(fact.rule);
    return [{ name: from, to: `/apis/${encodeURIComponent(of.api)}`, search: { at: path }, member: { of: `/api/apis/${encodeURIComponent(of.api)}`, path } }];
  }
  if (/^(the )?key$|^the key's entry for the API$|^the access rights of the key$/.test(from) && of.key) {
    const path = member(fact.rule, from.includes('entry') ? of.api : undefined, of.api);
    return [{ name: from, to: `/keys/${encodeURIComponent(of.key)}`, search: { at: path }, member: { of: `/api/keys/${encodeURIComponent(of.key)}`, path } }];
  }
  return [{ name: from }];
}

/** The first word of a rule is the path: "url_rewrites of v1", "header X-Team". */
const pathIn = (rule: string) => rule.split(' ')[0]!;

function inPolicy(fact: Fact, id: string, entry: boolean, api: string | undefined): Omit<Place, 'name'> {
  const to = `/policies/${encodeURIComponent(id)}`;
  const list = fieldRules.exec(fact.rule) ?? fieldRules.exec(`${fact.rule} ${fact.value}`);
  const of = `/api/policies/${encodeURIComponent(id)}`;
  if (list && api) return { to: `${to}/fields`, search: { api, f: fieldOf(list[2]!, fact), at: 'fields' }, member: { of, path: `access_rights[${JSON.stringify(api)}].${list[1]}` } };
  const path = member(fact.rule, entry ? api : undefined, api);
  return { to, search: { at: path }, member: { of, path } };
}

/** Type.field, as far as a fact names one. */
function fieldOf(name: string, fact: Fact): string {
  if (name.includes('.')) return name;
  return /^\w+$/.test(fact.value) ? `${name}.${fact.value}` : `${name}.`;
}

/** The path of a rule in a policy or key; `entry` is the API whose own limits set it. */
function member(rule: string, entry: string | undefined, api: string | undefined): string {
  const name = rule === 'quota' ? 'quota_max' : rule === 'is_inactive' ? 'active' : pathIn(rule);
  if (/^(versions|allowed_urls|disable_introspection|trusted_documents_only)$/.test(name) && api) return `access_rights[${JSON.stringify(api)}].${name}`;
  return entry ? `access_rights[${JSON.stringify(entry)}].limit.${name}` : name;
}

const decisive: Record<string, string> = { rate_limit: 'rate', quota_exceeded: 'quota', api_rate_limit: 'global_rate_limit' };

/** The fact that a refusal is due to; undefined: the stage names none. */
export function decidedBy(facts: Fact[] | undefined, reason: string | undefined): Fact | undefined {
  const rule = decisive[reason ?? ''];
  return (rule && facts?.find((one) => one.rule === rule)) || facts?.[0];
}

// Reasons that the body of a request decides on.
const ofBody = new Set(['graphql_invalid', 'graphql_too_large', 'depth_limit', 'operation_limit', 'field_restricted', 'introspection_disabled', 'untrusted_document', 'body_too_large']);

/** Whether a refusal depends on the body, which is not recorded. */
export const bodyDecides = (reason: string) => ofBody.has(reason);

/** The field of a policy that a recorded refusal is due to, as far as the record says. */
export function placeOfRefusal(refusal: { reason: string; api_id: string; policy?: string; message?: string; errors?: string }): Place | undefined {
  const { reason, policy, api_id: api } = refusal;
  if (!policy) return undefined;
  const name = `policy ${policy}`;
  const to = `/policies/${encodeURIComponent(policy)}`;
  const of = `/api/policies/${encodeURIComponent(policy)}`;
  if (reason === 'field_restricted') {
    const found = /field: (\w+) is restricted on type: (\w+)/.exec(`${refusal.message ?? ''} ${refusal.errors ?? ''}`);
    return { name, to: `${to}/fields`, search: { api, ...(found && { f: `${found[2]}.${found[1]}` }), at: 'fields' }, member: { of, path: `access_rights[${JSON.stringify(api)}].restricted_types` } };
  }
  const at = { depth_limit: 'max_query_depth', rate_limit: 'rate', quota_exceeded: 'quota_max', introspection_disabled: `access_rights[${JSON.stringify(api)}].disable_introspection`, url_denied: `access_rights[${JSON.stringify(api)}].allowed_urls` }[reason];
  return at === undefined ? undefined : { name, to, search: { at }, member: { of, path: at } };
}
