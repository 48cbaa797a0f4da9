import { Badge } from '../../parts/Badge';
import type { RequestState } from '../portal/model';
import { text } from './text';

/** The state of a key request. */
export function StateBadge({ state }: { state: RequestState }) {
  return <Badge kind={state === 'approved' ? 'ok' : state === 'rejected' ? 'danger' : 'info'}>{text.filters.states[state] ?? state}</Badge>;
}
