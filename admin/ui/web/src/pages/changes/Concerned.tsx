import { useRead } from '../../api';
import { Badge } from '../../parts/Badge';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import css from './changes.module.css';
import { readConcerned } from './model';
import { text } from './text';

/** The keys that the difference between two revisions concerns, those first that were called of late. */
export function ConcernedKeys({ revision, against }: { revision: number | string; against: number | string | undefined }) {
  const query = useRead(['changes', 'concerned', String(revision), String(against ?? '')], (signal) => readConcerned(revision, against, signal), { on: ['generation'] });
  return (
    <Loaded query={query} lines={1}>
      {(all) => (
        <>
          <p>{text.concerned.count(all.keys, all.called)}</p>
          {all.some.length > 0 && (
            <ul className={css.keys} aria-label={text.concerned.title}>
              {all.some.map((one) => (
                <li key={one.key_hash}>
                  <Link to={`/keys/${encodeURIComponent(one.key_hash)}`}>{one.alias || text.concerned.unnamed(one.key_hash)}</Link> {one.called && <Badge>{text.concerned.called}</Badge>}
                </li>
              ))}
              {all.keys > all.some.length && <li className="muted">{text.concerned.more(all.keys - all.some.length, all.keys >= 10_000)}</li>}
            </ul>
          )}
        </>
      )}
    </Loaded>
  );
}
