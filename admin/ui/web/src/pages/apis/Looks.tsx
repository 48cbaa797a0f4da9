// Tabs that only show: what depends on an API, and what was changed.
import { useRead } from '../../api/query';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card, Cards, Facts } from '../../parts/Card';
import { changes, Differences } from '../../parts/draft';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Time } from '../../parts/Time';
import { useURLState } from '../../parts/urlState';
import { number } from '../../text/en';
import { loadAudit, loadUses } from './read';
import { text as t } from './text';


export function UsesTab({ id }: { id: string }) {
  const uses = useRead(['api', id, 'uses'], (signal) => loadUses(id, signal), { on: ['revision'] });
  return (
    <Loaded query={uses} what={t.tabs.uses}>
      {(all) => (
        <Cards>
          <Card title={t.uses.policies}>
            {all.policies.length === 0 && <p className="muted">{t.uses.none}</p>}
            <ul>
              {all.policies.map((one) => (
                <li key={one.id}>
                  <Link to={`/policies/${encodeURIComponent(one.id)}`}>{one.name}</Link> {one.state !== 'active' && <Badge>{one.state}</Badge>}
                </li>
              ))}
            </ul>
            {all.policy_count > all.policies.length && <p className="muted">{number(all.policy_count)}</p>}
          </Card>
          <Card title={t.uses.keys}>
            <Facts
              of={[
                [t.uses.keys, <Link to="/keys" search={{ api_id: id }}>{t.keys(all.keys, all.keys_capped)}</Link>],
                [t.uses.calls, number(all.calls_30d)],
                [t.errors, number(all.errors_30d)],
              ]}
            />
          </Card>
          <Card title={t.uses.catalogue}>
            {all.catalogue.length === 0 && <p className="muted">{t.uses.none}</p>}
            <ul>
              {all.catalogue.map((one) => (
                <li key={one.id}>
                  <Link to={`/catalogue/${encodeURIComponent(one.id)}`}>{one.name}</Link> <Badge>{one.shown ? t.uses.shown : t.uses.hidden}</Badge>
                </li>
              ))}
            </ul>
          </Card>
        </Cards>
      )}
    </Loaded>
  );
}

export function HistoryTab({ id }: { id: string }) {
  const [url, setURL] = useURLState();
  const page = Math.max(1, Number(url.p) || 1);
  const audit = useRead(['api', id, 'audit', page], (signal) => loadAudit(id, page, signal), { on: ['revision'], keep: true });
  return (
    <Loaded query={audit} what={t.tabs.history}>
      {(list) => (
        <>
          {(list.audit ?? []).length === 0 && <p className="muted">{t.history.none}</p>}
          {(list.audit ?? []).map((entry) => (
            <Card
              key={entry.id}
              title={
                <>
                  {entry.action}, {entry.actor}, <Time at={entry.at} />
                </>
              }
              actions={entry.revision ? <Link to={`/changes/${entry.revision}`}>{`${t.history.revision} ${entry.revision}`}</Link> : undefined}
            >
              {entry.before !== null && entry.after !== null ? <Differences changes={changes(entry.before, entry.after)} /> : null}
            </Card>
          ))}
          {list.pages > 1 && (
            <div className="row">
              <Button disabled={page <= 1} onClick={() => setURL({ p: String(page - 1) }, { push: true })}>
                ‹
              </Button>
              <span>{`${page} / ${list.pages}`}</span>
              <Button disabled={page >= list.pages} onClick={() => setURL({ p: String(page + 1) }, { push: true })}>
                ›
              </Button>
            </div>
          )}
        </>
      )}
    </Loaded>
  );
}
