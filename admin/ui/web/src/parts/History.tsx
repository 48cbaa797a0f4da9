import type { components } from '../api.gen';
import { useRead } from '../api';
import { Button } from './Button';
import { Card } from './Card';
import { Differences } from './draft';
import { Link } from './Link';
import { Loaded } from './Loaded';
import { Time } from './Time';
import { useURLState } from './urlState';
import { t } from '../text/en';

export type ObjectHistory = components['schemas']['ObjectHistory'];

/** The revisions that changed an object: who, when, why, and which members. */
export function History(p: { of: string[]; what: string; load: (page: number, signal: AbortSignal) => Promise<ObjectHistory> }) {
  const [url, setURL] = useURLState();
  const page = Math.max(1, Number(url.p) || 1);
  const history = useRead([...p.of, 'history', page], (signal) => p.load(page, signal), { on: ['revision'], keep: true });
  const text = t.history;
  return (
    <Loaded query={history} what={p.what}>
      {(list) => (
        <>
          {list.changes.map((one) => (
            <Card
              key={one.revision}
              title={
                <>
                  {text.actions[one.action] ?? one.action}, {one.author || text.nobody}, <Time at={one.at} />
                </>
              }
              actions={<Link to={`/changes/${one.revision}`}>{text.revision(one.revision)}</Link>}
            >
              {one.reason && <p>{one.reason}</p>}
              {one.members.length > 0 && <Differences changes={one.members.map((member) => ({ path: [member.path], before: member.before, after: member.after }))} />}
            </Card>
          ))}
          {list.pages > 1 && (
            <div className="row">
              <Button aria-label={text.newer} disabled={page <= 1} onClick={() => setURL({ p: String(page - 1) }, { push: true })}>
                ‹
              </Button>
              <span>{`${page} / ${list.pages}`}</span>
              <Button aria-label={text.older} disabled={page >= list.pages} onClick={() => setURL({ p: String(page + 1) }, { push: true })}>
                ›
              </Button>
            </div>
          )}
        </>
      )}
    </Loaded>
  );
}
