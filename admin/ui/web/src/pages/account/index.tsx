import { useState } from 'react';
import { Failure, request, useRead, useWrite } from '../../api';
import { nameOf, refreshSession, session, useUser } from '../../app/session';
import { useStore } from '../../lib';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card, Cards, Facts } from '../../parts/Card';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, SecretField } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { t } from '../../text/en';
import css from './account.module.css';
import { text } from './text';

export const pages = { '/account': Account };

function Account() {
  const user = useUser();
  return (
    <Page title={text.title}>
      <Cards>
        <Card title={text.you}>
          <Facts
            of={[
              [text.name, nameOf(user)],
              [text.email, user.email_address],
              [text.role, t.role.names[user.role] ?? user.role],
            ]}
          />
        </Card>
        <Password />
      </Cards>
      <Sessions />
    </Page>
  );
}

function Password() {
  const { needsPassword, user } = useStore(session);
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const change = useWrite(
    async () => {
      await request('POST', '/api/users/me/actions/reset', { body: { new_password: next, ...(current ? { password: current } : {}) } });
      await refreshSession(); // the call's session got another token
    },
    {
      changes: [['sessions']],
      done: () => {
        setCurrent('');
        setNext('');
        toast({ kind: 'ok', text: text.changed });
      },
    },
  );
  const failure = change.error;
  return (
    <Card title={text.password}>
      {!user?.has_password && <p>{text.passwordNew}</p>}
      <FieldProblems problems={failure instanceof Failure ? failure.problems : []}>
        <form
          className={css.form}
          onSubmit={(event) => {
            event.preventDefault();
            if (next && !change.isPending) change.mutate(undefined);
          }}
        >
          <input type="text" name="username" autoComplete="username" value={user?.email_address ?? ''} readOnly hidden />
          {needsPassword && <SecretField label={text.current} path="password" autoComplete="current-password" value={current} onChange={setCurrent} required />}
          <SecretField label={text.next} path="new_password" help={text.nextHelp} autoComplete="new-password" value={next} onChange={setNext} required />
          {failure && <ErrorPanel failure={failure} />}
          <Button type="submit" kind="primary" busy={change.isPending}>
            {user?.has_password ? text.change : text.choose}
          </Button>
        </form>
      </FieldProblems>
    </Card>
  );
}

interface Row {
  id: string;
  created_at: string;
  last_used_at: string;
  address: string;
  agent: string;
  proof?: string;
  current: boolean;
}

/** "Chromium on Linux" out of a User-Agent, as far as one can tell. */
function browserOf(agent: string): string {
  const browser = /(Edg|OPR|Firefox|Chromium|Chrome|Safari|curl)\/?/.exec(agent)?.[1];
  const system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux)/.exec(agent)?.[1];
  const names: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', 'Mac OS X': 'macOS' };
  return [browser && (names[browser] ?? browser), system && (names[system] ?? system)].filter(Boolean).join(', ') || text.unknown;
}

function Sessions() {
  const sessions = useRead(['sessions'], (signal) => request<{ sessions: Row[] }>('GET', '/api/session/all', { signal }));
  const end = useWrite(
    async (rows: Row[]) => {
      for (const row of rows) await request('DELETE', `/api/session/${encodeURIComponent(row.id)}`);
    },
    { changes: [['sessions']], done: () => toast({ kind: 'ok', text: text.ended }) },
  );
  const others = (sessions.data?.sessions ?? []).filter((row) => !row.current);
  return (
    <Card
      title={text.sessions}
      actions={
        others.length > 0 && (
          <Button dense busy={end.isPending} onClick={() => end.mutate(others)}>
            {text.endOthers}
          </Button>
        )
      }
    >
      {end.error && <ErrorPanel failure={end.error} />}
      <Loaded query={sessions} what={text.sessions}>
        {(data) => (
          <div className={css.scroll} tabIndex={0} role="region" aria-label={text.sessions}>
            <table>
              <thead>
                <tr>
                  <th scope="col">{text.session}</th>
                  <th scope="col">{text.used}</th>
                  <th scope="col">{text.began}</th>
                  <th scope="col">{text.address}</th>
                  <th scope="col">{text.proof}</th>
                  <td />
                </tr>
              </thead>
              <tbody>
                {data.sessions.map((row) => (
                  <tr key={row.id}>
                    <td title={row.agent}>{browserOf(row.agent)}</td>
                    <td>
                      <Time at={row.last_used_at} />
                    </td>
                    <td>
                      <Time at={row.created_at} />
                    </td>
                    <td className="mono">{row.address}</td>
                    <td>{text.proofs[row.proof ?? ''] ?? row.proof}</td>
                    <td>
                      {row.current ? (
                        <Badge kind="ok">{text.current_}</Badge>
                      ) : (
                        <Button dense aria-label={text.endNamed(browserOf(row.agent))} busy={end.isPending} onClick={() => end.mutate([row])}>
                          {text.end}
                        </Button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Loaded>
    </Card>
  );
}
