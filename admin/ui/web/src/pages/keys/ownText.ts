import { findNodeAtLocation } from 'jsonc-parser';
import { parse, pretty, setAt } from '../../parts/draft/merge';

/** Members that the server fills in. */
const filledIn = ['access_rights_array', 'date_created', 'last_updated', 'org_id', 'quota_remaining', 'quota_renews', 'quotas', 'rotated_keys'];

/** The session in an answer about a key, without what the server fills in. */
export function ownOf(answer: string): string {
  const data = findNodeAtLocation(parse(answer).tree!, ['data'])!;
  const session = pretty(answer.slice(data.offset, data.offset + data.length));
  const have = JSON.parse(session) as Record<string, unknown>;
  return filledIn.filter((member) => member in have).reduce((now, member) => setAt(now, [member], undefined), session);
}
