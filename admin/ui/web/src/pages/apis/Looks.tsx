// Tabs that only show: what depends on an API, and what was changed.
import { useRead } from '../../api/query';
import { Badge } from '../../parts/Badge';
import { Card, Cards, Facts } from '../../parts/Card';
import { History } from '../../parts/History';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { number } from '../../text/en';
import { loadHistory, loadUses } from './read';
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
          {all.supergraphs.length > 0 && (
            <Card title={t.uses.supergraphs}>
              <ul>
                {all.supergraphs.map((one) => (
                  <li key={one.id}>
                    <Link to={`/apis/${encodeURIComponent(one.id)}`}>{one.name}</Link>
                  </li>
                ))}
              </ul>
            </Card>
          )}
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
  return <History of={['api', id]} what={t.tabs.history} load={(page, signal) => loadHistory(id, page, signal)} />;
}
