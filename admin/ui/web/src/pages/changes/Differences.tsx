import { Link } from '../../parts/Link';
import css from './changes.module.css';
import { sentence, type Diff, type Difference } from './model';
import { text } from './text';

const shown = (value: unknown) => (value === undefined ? <span className="muted">{text.member.absent}</span> : <pre className={css.value}>{JSON.stringify(value, null, 2)}</pre>);

const pages: Record<string, string> = { api: '/apis/', policy: '/policies/' };

function heading(one: Difference) {
  const name = one.action === 'deleted' || !pages[one.kind] ? one.id : <Link to={pages[one.kind] + encodeURIComponent(one.id)}>{one.id}</Link>;
  return (
    <h3>
      {text.kinds[one.kind] ?? one.kind} {name} {text.actions[one.action] ?? one.action}
    </h3>
  );
}

/** What differs between two revisions: in words, and member by member. */
export function Differences({ diff }: { diff: Diff }) {
  const objects = diff.objects ?? [];
  if (objects.length === 0) return <p>{text.same}</p>;
  return objects.map((one) => {
    const members = one.changes ?? [];
    return (
      <div key={`${one.kind} ${one.id}`} className={css.object}>
        {heading(one)}
        {one.action === 'updated' && (
          <ul className={css.words} aria-label={text.effect}>
            {members.slice(0, 20).map((member) => (
              <li key={member.path}>{sentence(member)}</li>
            ))}
            {members.length > 20 && <li>{text.others(members.length - 20)}</li>}
          </ul>
        )}
        <details>
          <summary>
            {text.inText}: {text.members(members.length)}
          </summary>
          <div className={css.scroll} tabIndex={0} role="region" aria-label={`${text.inText}: ${one.id}`}>
            <table className={css.table}>
              <thead>
                <tr>
                  <th scope="col">{text.member.path}</th>
                  <th scope="col">{text.member.before}</th>
                  <th scope="col">{text.member.after}</th>
                </tr>
              </thead>
              <tbody>
                {members.map((member) => (
                  <tr key={member.path}>
                    <td className="mono">{member.path || text.member.whole}</td>
                    <td>{shown(member.before)}</td>
                    <td>{shown(member.after)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      </div>
    );
  });
}
