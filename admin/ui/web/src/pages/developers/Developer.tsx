import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { Failure, queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { useURLState } from '../../parts/urlState';
import { Button } from '../../parts/Button';
import { Card, Cards, Facts } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { ID } from '../../parts/Copy';
import { Dialog } from '../../parts/Dialog';
import { Disclosure } from '../../parts/Disclosure';
import { DraftOffer, SaveBar, useDraft, useSave, type Base } from '../../parts/draft';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, NumberField, SecretField, TextField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { plural, t } from '../../text/en';
import { FieldsField } from '../portal/FieldsField';
import { one, policiesOf, portal, readBase, readList, replace, usePolicyNames, type Configuration, type Developer, type Done, type KeyRequest } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { StateBadge } from '../requests/StateBadge';
import { DeveloperState } from '.';
import { Clients } from './Clients';
import { Keys } from './Keys';
import { text } from './text';

/** One developer: keys, requests, OAuth clients, and what may be changed. */
export function DeveloperPage() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const query = useRead(['developers', id, 'base'], (signal) => readBase(one('developers', id), signal), { keep: true });
  if (!query.data) {
    return (
      <Page title={text.what}>
        <Loaded query={query} what={text.what}>
          {() => null}
        </Loaded>
      </Page>
    );
  }
  return <Shown key={id} id={id} base={query.data} />;
}

function Shown({ id, base }: { id: string; base: Base }) {
  const developer = JSON.parse(base.text) as Developer;
  const read = () => readBase(one('developers', id));
  const again = () => queryClient.invalidateQueries({ queryKey: ['developers'] });
  return (
    <Page title={developer.email} note={<DeveloperState developer={developer} />} actions={<Verbs developer={developer} base={base} />}>
      <Facts
        of={[
          [text.facts.id, <ID key="id" value={developer.id} label={text.facts.id} />],
          [text.facts.since, <Time key="since" at={developer.date_created} as="full" />],
          [text.facts.login, developer.last_login_date ? <Time key="login" at={developer.last_login_date} /> : text.facts.never],
          [text.facts.password, developer.password_updated ? <Time key="password" at={developer.password_updated} /> : text.facts.none],
        ]}
      />
      <Keys developer={developer} />
      <Cards>
        <Requests developer={developer} />
        <Clients developer={developer} />
      </Cards>
      <p className="row">
        <Link to="/webhooks" search={{ developer: id }}>
          {text.webhooks}
        </Link>
        <Link to="/deliveries" search={{ developer: id, state: 'any' }}>
          {text.deliveries}
        </Link>
      </p>
      <Details id={id} base={base} read={read} again={again} />
    </Page>
  );
}

function Requests({ developer }: { developer: Developer }) {
  const query = useRead(['requests', 'of', developer.id], (signal) => readList<KeyRequest>('requests', { by_user: developer.id, page_size: 6 }, signal), { on: ['pending_requests'] });
  const nameOf = usePolicyNames((query.data?.rows ?? []).flatMap(policiesOf));
  return (
    <Card
      title={text.requests.title}
      actions={
        <Link to="/requests" search={{ q: developer.email, state: 'any' }}>
          {text.requests.all}
        </Link>
      }
    >
      <Loaded query={query} what={text.requests.title} lines={2}>
        {({ rows }) =>
          rows.length === 0 ? (
            <p className="muted">{text.requests.none}</p>
          ) : (
            <ul className={portalCSS.lines}>
              {rows.map((row) => (
                <li key={row.id} className="row">
                  <StateBadge state={row.state} />
                  <Link to="/requests" search={{ state: 'any', open: row.id }}>
                    {policiesOf(row).map(nameOf).join(', ') || row.id}
                  </Link>
                  <span className="muted">
                    <Time at={row.date_created} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}

function Details(p: { id: string; base: Base; read: () => Promise<Base>; again: () => Promise<void> }) {
  const may = useCan('approver');
  const draft = useDraft({ id: `developer:${p.id}`, base: p.base });
  const saving = useSave({ draft, send: replace(one('developers', p.id)), reload: p.read, done: () => void p.again() });
  const config = useRead(['portal', 'configuration'], (signal) => request<Configuration>('GET', `${portal}/configuration`, { signal }));
  return (
    <FieldProblems problems={saving.problems}>
      <DraftOffer draft={draft} />
      <Card title={text.details.title}>
        <div className={portalCSS.form}>
          <TextField label={text.email} path="email" type="email" disabled={!may} required value={draft.get<string>('email') ?? ''} onChange={(value) => draft.set('email', value)} />
          <FieldsField label={text.details.fields} path="fields" disabled={!may} known={config.data?.signup_fields ?? []} value={draft.get<Record<string, string>>('fields') ?? {}} onChange={(value) => draft.set('fields', value)} />
          <NumberField
            label={text.details.days}
            help={text.details.daysHelp}
            unit={text.details.daysUnit}
            path="password_max_days"
            min={0}
            disabled={!may}
            value={draft.get<number>('password_max_days')}
            onChange={(value) => draft.set('password_max_days', value ?? 0)}
          />
          {may && (
            <>
              <TextField label={text.details.sso} path="sso_key" value={draft.get<string>('sso_key') ?? ''} onChange={(value) => draft.set('sso_key', value)} autoComplete="off" />
              <TextField label={text.details.nonce} path="nonce" value={draft.get<string>('nonce') ?? ''} onChange={(value) => draft.set('nonce', value)} autoComplete="off" />
            </>
          )}
          <Needs role="approver" say>
            {null}
          </Needs>
        </div>
      </Card>
      <SaveBar draft={draft} saving={saving} />
    </FieldProblems>
  );
}

function Verbs({ developer: d, base }: { developer: Developer; base: Base }) {
  const [dialog, setDialog] = useState<'inactive' | 'password' | 'remove'>();
  const [, setURL] = useURLState();
  const navigate = useNavigate();
  const close = () => setDialog(undefined);
  const change = async (what: Partial<Developer>) => {
    await request('PUT', one('developers', d.id), { body: { ...(JSON.parse(base.text) as Developer), ...what }, headers: { 'If-Match': base.etag } });
    toast({ kind: 'ok', text: text.updated });
    await queryClient.invalidateQueries({ queryKey: ['developers'] });
  };
  const tryTo = (what: Partial<Developer>) =>
    void change(what).catch((cause: Error) => {
      toast({ kind: 'danger', text: cause.message });
      void queryClient.invalidateQueries({ queryKey: ['developers'] });
    });
  const keys = Object.keys(d.keys).length;
  return (
    <Needs role="approver" say>
      {d.verified === false && <Button onClick={() => tryTo({ verified: true })}>{text.verbs.verify}</Button>}
      {d.inactive && (
        <Button kind="primary" onClick={() => tryTo({ inactive: false })}>
          {text.verbs.activate}
        </Button>
      )}
      <Button onClick={() => setURL({ new: 'key' })} kind={d.inactive ? 'plain' : 'primary'} disabled={d.inactive}>
        {text.keys.create}
      </Button>
      <Disclosure label={text.verbs.more} kind="plain">
        {(done) => (
          <>
            {!d.inactive && (
              <Button kind="quiet" onClick={() => (done(), setDialog('inactive'))}>
                {text.verbs.deactivate}
              </Button>
            )}
            <Button kind="quiet" onClick={() => (done(), setDialog('password'))}>
              {text.verbs.password}
            </Button>
            <Button kind="quiet" onClick={() => (done(), setURL({ new: 'client' }))}>
              {text.clients.create}
            </Button>
            <Button kind="danger" onClick={() => (done(), setDialog('remove'))}>
              {text.verbs.remove}
            </Button>
          </>
        )}
      </Disclosure>
      {dialog === 'inactive' && (
        <Confirm title={text.deactivateTitle(d.email)} verb={text.verbs.deactivateNow} onClose={close} onConfirm={() => change({ inactive: true })}>
          <p>{text.deactivateHelp}</p>
        </Confirm>
      )}
      {dialog === 'password' && <Password developer={d} onClose={close} />}
      {dialog === 'remove' && (
        <Confirm
          title={text.removeTitle(d.email)}
          name={d.email}
          verb={text.verbs.removeNow}
          onClose={close}
          onConfirm={async () => {
            await request<Done>('DELETE', one('developers', d.id));
            toast({ kind: 'ok', text: text.removed(d.email) });
            await navigate({ to: '/developers' });
            void queryClient.invalidateQueries({ queryKey: ['developers', 'list'] });
          }}
        >
          <p>{t.confirm.gone}</p>
          <ul className={portalCSS.gone}>
            <li>{text.removeKeys(plural(keys, 'key', 'keys'))}</li>
            <li>{text.removeRequests}</li>
          </ul>
        </Confirm>
      )}
    </Needs>
  );
}

function Password({ developer: d, onClose }: { developer: Developer; onClose: () => void }) {
  const [password, setPassword] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const send = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await request<Done>('POST', one('developers/password', d.id), { body: { password } });
      toast({ kind: 'ok', text: text.passwordDone });
      void queryClient.invalidateQueries({ queryKey: ['developers'] });
      onClose();
    } catch (cause) {
      setFailure(cause);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={text.passwordTitle(d.email)}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" type="submit" form="developer-password" busy={busy}>
            {text.verbs.passwordNow}
          </Button>
        </>
      }
    >
      <form id="developer-password" className={portalCSS.form} onSubmit={(event) => (event.preventDefault(), void send())}>
        <FieldProblems problems={failure instanceof Failure ? failure.problems : []}>
          <SecretField label={text.password} help={text.passwordHelp} path="password" value={password} onChange={setPassword} required autoComplete="new-password" autoFocus />
        </FieldProblems>
        {failure !== undefined && <ErrorPanel failure={failure} />}
      </form>
    </Dialog>
  );
}
