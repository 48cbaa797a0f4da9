import type { components } from '../api.gen';
import { plural } from '../text/en';
import { Link } from './Link';

/** The names of keys that a change concerns: those first that were called. */
export function Concerned({ whom }: { whom: components['schemas']['Whom'] }) {
  const some = whom.some ?? [];
  const more = whom.keys - some.length;
  if (some.length === 0) return null;
  return (
    <p>
      {some.map((one, n) => (
        <span key={one.key_hash}>
          {n > 0 && ', '}
          <Link to={`/keys/${encodeURIComponent(one.key_hash)}`}>{one.alias || one.key_hash.slice(0, 12)}</Link>
        </span>
      ))}
      {more > 0 && ` and ${whom.keys >= 10_000 ? 'many' : plural(more, 'further key', 'further keys')}`}
    </p>
  );
}
