import type { components } from '../../api.gen';
import { request, useRead } from '../../api';
import { Concerned } from '../../parts/Concerned';
import { Loaded } from '../../parts/Loaded';
import { text } from './text';

/** The keys that the difference between two revisions concerns, those first that were called of late. */
export function ConcernedKeys({ revision, against }: { revision: number | string; against: number | string | undefined }) {
  const query = useRead(
    ['changes', 'concerned', String(revision), String(against ?? '')],
    (signal) => request<components['schemas']['Whom']>('GET', `/api/config/revisions/${revision}/concerned`, { query: { against }, signal }),
    { on: ['generation'] },
  );
  return (
    <Loaded query={query} lines={1}>
      {(whom) => (
        <>
          <p>{text.concerned.count(whom.keys, whom.called)}</p>
          <Concerned whom={whom} />
        </>
      )}
    </Loaded>
  );
}
