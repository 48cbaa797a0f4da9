import { Facts } from '../../parts/Card';
import { Link } from '../../parts/Link';
import { t } from '../../text/en';
import type { Session } from './session';
import { text } from './text';

const most = 10; // APIs that are listed

/** What a session with policies comes to. */
export function Effective({ session }: { session: Session }) {
  const apis = Object.entries(session.access_rights ?? {});
  const limit = (value: number | undefined, words: (value: number) => string) => (!value ? t.nothing : value < 0 ? text.noLimit : words(value));
  return (
    <>
      <h3>{text.effective}</h3>
      <Facts
        of={[
          [text.rate, limit(session.rate, (rate) => (session.per ? text.rateOf(rate, session.per) : t.nothing))],
          [text.quotaName, limit(session.quota_max, (max) => text.quotaIn(max, session.quota_renewal_rate ?? 0))],
          [text.depth, limit(session.max_query_depth, String)],
          [
            text.apis,
            apis.length === 0
              ? text.none
              : apis.slice(0, most).map(([id, access], n) => (
                  <span key={id}>
                    {n > 0 && ', '}
                    <Link to={`/apis/${encodeURIComponent(id)}`}>{access.api_name || id}</Link>
                  </span>
                )),
          ],
        ]}
      />
      {apis.length > most && <p className="muted">{t.bulk.more(apis.length - most)}</p>}
    </>
  );
}
