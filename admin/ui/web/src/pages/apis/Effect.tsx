import type { components } from '../../api.gen';
import { Concerned } from '../../parts/Concerned';
import { plural, number, t } from '../../text/en';

/** What a change comes to, in words. */
export function Effect({ effect }: { effect: components['schemas']['Effect'] }) {
  const { concerned } = effect;
  const rights = effect.rights ?? [];
  if ((effect.objects ?? []).length === 0) return <p>{t.review.unchanged}</p>;
  return (
    <>
      <p>
        {concerned.keys === 0
          ? 'No key is concerned.'
          : `${concerned.keys >= 10_000 ? '10,000+ keys' : plural(concerned.keys, 'key', 'keys')} may call this API or have a policy that names it; ${number(concerned.called)} of them called in the last 24 hours.`}
      </p>
      <Concerned whom={concerned} />
      {rights.length > 0 && (
        <ul>
          {rights.slice(0, 20).map((right, n) => (
            <li key={n}>
              {right.direction === 'lost' ? 'Lost' : 'Gained'}: {right.text}
            </li>
          ))}
        </ul>
      )}
      {(effect.warnings ?? []).map((warning) => (
        <p key={warning} className="muted">
          {warning}
        </p>
      ))}
    </>
  );
}
