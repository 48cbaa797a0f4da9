import { useState } from 'react';
import { request, useRead, useWrite } from '../../api';
import { useShortcuts } from '../../app/shortcuts';
import { useCan } from '../../app/session';
import { Button } from '../../parts/Button';
import { Card, Facts } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { ID } from '../../parts/Copy';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { TextAreaField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { t } from '../../text/en';
import { KeysTable } from '../portal/KeysTable';
import { one, policiesOf, readList, usePolicyNames, useSecretCall, wasLost, type Credential, type Done, type KeyRequest, type KeyView } from '../portal/model';
import { whoOf, type Decided } from '.';
import css from './requests.module.css';
import { StateBadge } from './StateBadge';
import { text } from './text';

/** One request beside the list: what is asked for, by whom, and the verbs. */
export function RequestPanel(p: { id: string; onDecided: (decided: Decided, verb: 'approved' | 'declined') => void; onClose: () => void }) {
  const query = useRead(['requests', 'one', p.id], (signal) => request<KeyRequest>('GET', one('requests', p.id), { signal }), { on: ['pending_requests'] });
  return (
    <Loaded query={query} what={text.title}>
      {(found) => <Shown {...p} request={found} again={() => void query.refetch()} />}
    </Loaded>
  );
}

function Shown(p: { request: KeyRequest; again: () => void; onDecided: (decided: Decided, verb: 'approved' | 'declined') => void; onClose: () => void }) {
  const { request: r } = p;
  const [dialog, setDialog] = useState<'decline' | 'remove'>();
  const may = useCan('approver');
  const approving = useSecretCall();
  const who = whoOf(r);
  const nameOf = usePolicyNames([...policiesOf(r), ...(r.remove_policies ?? [])]);
  const pending = r.state === 'pending';
  const approve = () => {
    if (!pending || approving.busy) return;
    void approving
      .run(
        () => request<Credential>('PUT', one('requests/approve', r.id)),
        (credential) => p.onDecided({ request: r, who, credential }, 'approved'),
      )
      .then(p.again);
  };
  useShortcuts([
    may && pending && { keys: 'a', label: text.keys.approve, run: approve },
    may && pending && { keys: 'd', label: text.keys.decline, run: () => setDialog('decline') },
  ]);
  const plans = policiesOf(r).map(nameOf).join(', ');
  return (
    <>
      <div className={css.head}>
        <h2>{r.key_id && pending ? text.change(who) : text.asks(who, plans)}</h2>
        <StateBadge state={r.state} />
      </div>
      {pending && (
        <div className="row">
          <Needs role="approver" say>
            <Button kind="primary" busy={approving.busy} onClick={approve} aria-keyshortcuts="a">
              {text.verbs.approve} <kbd className={css.onPrimary}>a</kbd>
            </Button>
            <Button kind="danger" onClick={() => setDialog('decline')} aria-keyshortcuts="d">
              {text.verbs.decline} <kbd>d</kbd>
            </Button>
          </Needs>
        </div>
      )}
      {approving.failure !== undefined && (
        <>
          <ErrorPanel failure={approving.failure} what={text.approving} />
          {wasLost(approving.failure) && <p>{text.lost}</p>}
        </>
      )}
      {pending && r.portal_developer?.inactive && <p className={css.warning}>{text.inactive}</p>}
      <Facts of={factsOf(r, nameOf)} />
      <Card title={text.fields}>
        {Object.keys(r.fields ?? {}).length === 0 ? (
          <p className="muted">{text.noFields}</p>
        ) : (
          <Facts of={Object.entries(r.fields).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])} />
        )}
      </Card>
      {r.portal_developer && <OtherKeys developer={r.portal_developer.id} />}
      {r.portal_developer && <OtherRequests request={r} />}
      {!pending && (
        <Needs role="approver">
          <div>
            <Button dense kind="danger" onClick={() => setDialog('remove')}>
              {text.verbs.remove}
            </Button>
          </div>
        </Needs>
      )}
      {dialog === 'decline' && <Decline who={who} request={r} onClose={() => setDialog(undefined)} again={p.again} onDone={() => p.onDecided({ request: r, who }, 'declined')} />}
      {dialog === 'remove' && (
        <Confirm
          title={text.removeTitle}
          verb={text.verbs.removeNow}
          onClose={() => setDialog(undefined)}
          onConfirm={async () => {
            await request('DELETE', one('requests', r.id));
            toast({ kind: 'ok', text: text.removed });
            p.onClose();
          }}
        >
          <p>{text.removeHelp}</p>
        </Confirm>
      )}
    </>
  );
}

function factsOf(r: KeyRequest, nameOf: (id: string) => string): [string, React.ReactNode][] {
  const facts: [string, React.ReactNode][] = [];
  const links = (ids: string[]) =>
    ids.map((id, at) => (
      <span key={id}>
        {at > 0 && ', '}
        <Link to={`/policies/${encodeURIComponent(id)}`}>{nameOf(id)}</Link>
      </span>
    ));
  if (policiesOf(r).length > 0) facts.push([r.key_id && r.state === 'pending' ? text.facts.adds : text.facts.policies, links(policiesOf(r))]);
  if (r.remove_policies?.length) facts.push([text.facts.removes, links(r.remove_policies)]);
  if (r.key_id) {
    facts.push([
      r.state === 'approved' ? text.facts.issued : text.facts.key,
      <Link key="key" to={`/keys/${encodeURIComponent(r.key_id)}`} className="mono">
        {r.key_id.slice(0, 12)}…
      </Link>,
    ]);
  }
  facts.push([text.facts.kind, text.kinds[r.catalogue_entry?.auth_type ?? ''] ?? r.catalogue_entry?.auth_type]);
  if (r.oauth_info?.redirect_uri) facts.push([text.facts.redirect, r.oauth_info.redirect_uri]);
  if (r.jwt_secret) facts.push([text.facts.jwt, text.facts.jwtGiven]);
  if (r.certificate) facts.push([text.facts.certificate, <ID key="certificate" value={r.certificate} />]);
  facts.push([text.facts.asked, <Time key="asked" at={r.date_created} as="full" />]);
  if (r.state !== 'pending') {
    facts.push([
      text.facts.decided,
      <span key="decided">
        <Time at={r.decided_at} as="full" /> {r.decided_by && text.facts.by(r.decided_by)}
      </span>,
    ]);
  }
  if (r.reason) facts.push([text.facts.reason, r.reason]);
  facts.push([text.facts.id, <ID key="id" value={r.id} label={text.facts.id} />]);
  return facts;
}

function OtherKeys({ developer }: { developer: string }) {
  const query = useRead(['developers', developer, 'keys', 5], (signal) => readList<KeyView>(`developers/${encodeURIComponent(developer)}/keys`, { page_size: 5 }, signal));
  return (
    <Card title={text.others} actions={<Link to={`/developers/${encodeURIComponent(developer)}`}>{text.columns.developer}</Link>}>
      <Loaded query={query} what={text.others} lines={2}>
        {({ rows }) => (rows.length === 0 ? <p className="muted">{text.noOthers}</p> : <KeysTable keys={rows} label={text.others} />)}
      </Loaded>
    </Card>
  );
}

function OtherRequests({ request: r }: { request: KeyRequest }) {
  const developer = r.portal_developer!.id;
  const query = useRead(['requests', 'of', developer], (signal) => readList<KeyRequest>('requests', { by_user: developer, page_size: 6 }, signal));
  const others = (query.data?.rows ?? []).filter((other) => other.id !== r.id).slice(0, 5);
  const nameOf = usePolicyNames(others.flatMap(policiesOf));
  if (others.length === 0) return null;
  return (
    <Card title={text.earlier}>
      <ul className={css.earlier}>
        {others.map((other) => (
          <li key={other.id} className="row">
            <StateBadge state={other.state} />
            <Link to="/requests" search={{ state: 'any', open: other.id }}>
              {policiesOf(other).map(nameOf).join(', ') || text.facts.removes}
            </Link>
            <span className="muted">
              <Time at={other.date_created} />
            </span>
            {other.reason && <span>{other.reason}</span>}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Decline(p: { who: string; request: KeyRequest; onDone: () => void; onClose: () => void; again: () => void }) {
  const [reason, setReason] = useState('');
  const decline = useWrite(() => request<Done>('PUT', one('requests/reject', p.request.id), { body: { reason } }), {
    done: () => {
      p.onClose();
      p.onDone();
    },
  });
  const send = () => decline.mutate(undefined, { onSettled: p.again });
  useShortcuts([{ keys: 'Mod+Enter', label: text.verbs.declineNow, run: send }]);
  return (
    <Dialog
      title={text.declineTitle(p.who)}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind="dangerPrimary" busy={decline.isPending} onClick={send}>
            {text.verbs.declineNow}
          </Button>
        </>
      }
    >
      <TextAreaField label={text.reason} help={text.reasonHelp} path="reason" value={reason} onChange={setReason} maxLength={2000} />
      {decline.isError && <ErrorPanel failure={decline.error} what={text.declining} />}
    </Dialog>
  );
}
