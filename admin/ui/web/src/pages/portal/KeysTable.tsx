import type { ReactNode } from 'react';
import { Badge } from '../../parts/Badge';
import { Link } from '../../parts/Link';
import { Time } from '../../parts/Time';
import { number, t } from '../../text/en';
import type { KeyView } from './model';
import css from './portal.module.css';

const text = {
  key: 'Key',
  policies: 'Policies',
  used: 'Quota used',
  state: 'State',
  made: 'Made',
  verbs: 'Verbs',
  of: (used: number, max: number) => `${number(used)} of ${number(max)}`,
  unknown: 'not known',
  unlimited: 'no quota',
  kinds: { authToken: 'key', basic: 'user', oauth: 'OAuth client' },
  states: { active: 'active', inactive: 'inactive', expired: 'expired', unusable: 'unusable' },
};

/** Keys of a developer, with what is used of their quotas. */
export function KeysTable({ keys, label, verbs }: { keys: KeyView[]; label: string; verbs?: (key: KeyView) => ReactNode }) {
  return (
    <div className={css.scroll} tabIndex={0} role="group" aria-label={label}>
      <table className={css.table} aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{text.key}</th>
            <th scope="col">{text.policies}</th>
            <th scope="col">{text.used}</th>
            <th scope="col">{text.state}</th>
            <th scope="col" className={css.wide}>
              {text.made}
            </th>
            {verbs && (
              <th scope="col">
                <span className="sr-only">{text.verbs}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.key_id}>
              <td className={css.key}>
                <Link to={`/keys/${encodeURIComponent(key.key_id)}`} className="mono">
                  …{key.key_id.slice(-6)}
                </Link>{' '}
                {key.auth_type !== 'authToken' && <Badge>{text.kinds[key.auth_type]}</Badge>}
              </td>
              <td>{key.policies.map((policy) => policy.name || policy.id).join(', ') || t.nothing}</td>
              <td>{usedOf(key)}</td>
              <td>
                <Badge kind={key.state === 'active' ? 'ok' : 'warn'}>{text.states[key.state] ?? key.state}</Badge>
              </td>
              <td className={css.wide}>
                <Time at={key.date_created} as="day" />
              </td>
              {verbs && <td>{verbs(key)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The quota of which the largest part is used: APIs may have quotas of their own. */
function usedOf(key: KeyView): string {
  const limited = key.apis.filter((api) => api.quota_max > 0);
  if (limited.length === 0) return text.unlimited;
  const fullest = limited.reduce((a, b) => ((b.quota_used ?? 0) / b.quota_max > (a.quota_used ?? 0) / a.quota_max ? b : a));
  return fullest.quota_used === null ? text.unknown : text.of(fullest.quota_used, fullest.quota_max);
}
