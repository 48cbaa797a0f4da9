// Who set a value that refused a request, and in which revision.
import type { components } from '../../api.gen';
import { request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { Link } from '../../parts/Link';
import { Time } from '../../parts/Time';
import type { Place } from './places';
import { text } from './text';

type MemberOrigin = components['schemas']['MemberOrigin'];

/** The newest change of the member that a place has, as of a revision. Nothing until it is known, or when it is not. */
export function Origin({ place, revision, named }: { place: Place; revision?: string; /** Several have the rule: it says which. */ named?: boolean }) {
  const { member } = place;
  const admin = useCan('admin');
  const as = /^[1-9]\d*$/.test(revision ?? '') && !member?.of.startsWith('/api/keys/') ? revision : undefined;
  const origin = useRead(
    ['origin', member?.of, member?.path, as],
    (signal) => request<MemberOrigin>('GET', `${member!.of}/origin`, { query: { path: member!.path, revision: as, hashed: member!.of.startsWith('/api/keys/') || undefined }, signal }),
    { enabled: member !== undefined, on: as === undefined ? ['revision'] : [], staleTime: 60_000 },
  );
  const change = origin.data?.change;
  if (!member || !change) return null;
  return (
    <span>
      {named && `${place.name}: `}
      {text.did[change.action]} {change.author || text.nobody}
      {change.revision ? (
        <>
          {' '}
          {text.in} <Link to={`/changes/${change.revision}`}>{text.inRevision(change.revision)}</Link>
        </>
      ) : (
        admin &&
        member.of.startsWith('/api/keys/') && (
          <>
            {', '}
            <Link to="/audit" search={{ kind: 'key', object: decodeURIComponent(member.of.slice('/api/keys/'.length)) }}>
              {text.log}
            </Link>
          </>
        )
      )}
      {', '}
      <Time at={change.at} />
    </span>
  );
}
