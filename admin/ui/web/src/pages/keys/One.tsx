import { useNavigate, useParams } from '@tanstack/react-router';
import { lazy, Suspense, useRef, useState, type ReactNode } from 'react';
import { Failure, queryClient, useRead, type Failure as Failed } from '../../api';
import { useShortcuts } from '../../app/shortcuts';
import { randomID } from '../../lib';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { Card, Cards, Facts } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { ID } from '../../parts/Copy';
import { Dialog } from '../../parts/Dialog';
import { EmptyState } from '../../parts/EmptyState';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { SelectField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { useCan } from '../../app/session';
import { useFieldInAddress } from '../../parts/fieldInAddress';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { SecretSheet } from '../../parts/SecretSheet';
import { Skeleton } from '../../parts/Skeleton';
import { Tabs } from '../../parts/Tabs';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { reasonText } from '../../reasons';
import { t } from '../../text/en';
import { refusals, usage } from '../traffic/data';
import { rangeOf, spanOf } from '../traffic/range';
import { Outcomes, RangePicker, Ranks, RefusalTable } from '../traffic/parts';
import { endFormer, getKey, resetQuota, revokeKey, rotateKey, setPolicies } from './data';
import { scopesOf, type Key, type Session } from './session';
import css from './keys.module.css';
import { PolicyPicker } from './PolicyPicker';
import { text } from './text';

const Edit = lazy(() => import('./Edit'));

type Tab = 'overview' | 'edit' | 'usage' | 'refusals';

export const Overview = () => <OneKey tab="overview" />;
export const EditPage = () => <OneKey tab="edit" />;
export const Usage = () => <OneKey tab="usage" />;
export const Refusals = () => <OneKey tab="refusals" />;

function OneKey({ tab }: { tab: Tab }) {
  const { hash = '' } = useParams({ strict: false }) as { hash?: string };
  const key = useRead(['keys', hash], (signal) => getKey(hash, signal), { on: ['generation', 'usage_until'] });
  if (key.error instanceof Failure && key.error.status === 404) {
    return (
      <Page title={text.missing}>
        <EmptyState title={text.missing} text={text.missingText} action={<LinkButton to="/keys">{text.all}</LinkButton>} />
      </Page>
    );
  }
  const session = key.data?.data;
  const name = session?.alias || text.unnamed(hash);
  const at = `/keys/${encodeURIComponent(hash)}`;
  return (
    <Page
      title={name}
      note={
        <span className="row">
          <ID value={hash} label={text.hash} />
          {session && <State session={session} />}
        </span>
      }
      actions={key.data && <Verbs shown={key.data} name={name} editing={tab === 'edit'} />}
    >
      <Tabs
        label={text.tabs}
        tabs={[
          { to: at, label: text.overview },
          { to: `${at}/edit`, label: text.edit },
          { to: `${at}/usage`, label: text.usage },
          { to: `${at}/refusals`, label: text.refusals },
        ]}
      />
      {tab === 'overview' && <Loaded query={key}>{(data) => <Shown shown={data} />}</Loaded>}
      {tab === 'edit' && (
        <Suspense fallback={<Skeleton lines={8} />}>
          <Edit hash={hash} />
        </Suspense>
      )}
      {tab === 'usage' && <UsageOf hash={hash} otherwise="7d" picker />}
      {tab === 'refusals' && <RefusalsOf hash={hash} />}
    </Page>
  );
}

function State({ session }: { session: Session }) {
  const ended = !!session.expires && session.expires > 0 && session.expires * 1000 < Date.now();
  const off = session.is_inactive || session.active === false || ended;
  return <Badge kind={off ? 'danger' : 'ok'}>{off ? text.inactive : text.active}</Badge>;
}

/** A fact that a link can lead to, by the member of the session that it shows. */
function At({ path, children }: { path: string; children: ReactNode }) {
  return (
    <span data-path={path} tabIndex={-1}>
      {children}
    </span>
  );
}

function Shown({ shown }: { shown: Key }) {
  useFieldInAddress();
  const session = shown.data;
  const scopes = scopesOf(session);
  const own = Object.entries(session.access_rights ?? {});
  const former = (session.rotated_keys ?? []).filter((one) => one.retires && one.retires * 1000 > Date.now());
  return (
    <>
      <Cards>
        <Card title={text.limits}>
          {scopes.length === 0 && <p className="muted">{text.unlimited}</p>}
          {scopes.map((scope) => (
            <div key={scope.api ?? ''} className={css.quota} data-path={scope.api ? `access_rights[${JSON.stringify(scope.api)}].limit.quota_max` : 'quota_max'} tabIndex={-1}>
              <label htmlFor={`quota-${scope.api ?? ''}`}>{text.quotaOf(scope.api ? scope.name : text.allAPIs)}</label>
              <meter id={`quota-${scope.api ?? ''}`} min={0} max={scope.max} value={scope.used} high={scope.max * 0.9} />
              <span>
                {text.quota(scope.used, scope.max)}
                {!!scope.renews && scope.renews * 1000 > Date.now() && (
                  <>
                    , {text.renews} <Time at={scope.renews * 1000} />
                  </>
                )}
              </span>
            </div>
          ))}
          <Facts
            of={[
              [
                text.rate,
                <At key="r" path="rate">
                  {session.rate && session.per ? text.rateOf(session.rate, session.per) : text.noRate}
                </At>,
              ],
              [
                text.depth,
                <At key="d" path="max_query_depth">
                  {session.max_query_depth && session.max_query_depth > 0 ? String(session.max_query_depth) : t.nothing}
                </At>,
              ],
            ]}
          />
          <p className="muted">{text.byPolicies}</p>
        </Card>
        <Card title={text.session}>
          <Facts
            of={[
              [
                text.policies,
                session.apply_policies?.length ? (
                  <span className="row" data-path="apply_policies" tabIndex={-1}>
                    {session.apply_policies.map((id) => (
                      <Link key={id} to={`/policies/${encodeURIComponent(id)}`}>
                        {id}
                      </Link>
                    ))}
                  </span>
                ) : (
                  text.none
                ),
              ],
              [
                text.access,
                own.length === 0
                  ? text.none
                  : own.map(([id, access]) => (
                      <div key={id} data-path={`access_rights[${JSON.stringify(id)}]`} tabIndex={-1}>
                        <Link to={`/apis/${encodeURIComponent(id)}`}>{access.api_name || id}</Link>
                      </div>
                    )),
              ],
              [
                text.ends,
                <At key="e" path="expires">
                  {session.expires && session.expires > 0 ? <Time at={session.expires * 1000} as="full" /> : text.never}
                </At>,
              ],
              [text.created, <Time key="c" at={session.date_created} as="full" />],
              [text.labels, session.tags?.join(', ') || text.none],
            ]}
          />
        </Card>
        {former.length > 0 && <Former hash={shown.key_hash} former={former as { key_hash: string; retires: number }[]} />}
      </Cards>
      <Card title={text.week} actions={<LinkButton dense to={`/keys/${encodeURIComponent(shown.key_hash)}/usage`}>{text.usage}</LinkButton>}>
        <UsageOf hash={shown.key_hash} otherwise="7d" />
      </Card>
      <Card
        title={text.lastRefusals}
        actions={
          <LinkButton dense to={`/keys/${encodeURIComponent(shown.key_hash)}/refusals`}>
            {text.allRefusals}
          </LinkButton>
        }
      >
        <RefusalsOf hash={shown.key_hash} few />
      </Card>
    </>
  );
}

function Former({ hash, former }: { hash: string; former: { key_hash: string; retires: number }[] }) {
  const [asking, setAsking] = useState(false);
  return (
    <Card
      title={text.former}
      actions={
        <Needs role="editor">
          <Button dense onClick={() => setAsking(true)}>
            {text.endNow}
          </Button>
        </Needs>
      }
    >
      <p className="muted">{text.formerText}</p>
      <ul className={css.choices}>
        {former.map((one) => (
          <li key={one.key_hash}>
            <ID value={one.key_hash} /> {text.retires} <Time at={one.retires * 1000} />
          </li>
        ))}
      </ul>
      {asking && (
        <Confirm title={text.endTitle} verb={text.endNow} onClose={() => setAsking(false)} onConfirm={() => changed(endFormer(hash), hash, text.ended)}>
          <p>{text.endText}</p>
        </Confirm>
      )}
    </Card>
  );
}

/** Waits for a change of a key, reads it again and says what was done. */
async function changed(work: Promise<unknown>, hash: string, said: string) {
  await work;
  toast({ text: said, kind: 'ok' });
  await queryClient.invalidateQueries({ queryKey: ['keys', hash] });
}

function Verbs({ shown, name, editing }: { shown: Key; name: string; editing: boolean }) {
  const navigate = useNavigate();
  const can = useCan('editor');
  const [open, setOpen] = useState<'rotate' | 'reset' | 'revoke' | 'policies'>();
  const close = () => setOpen(undefined);
  const hash = shown.key_hash;
  useShortcuts([
    can && { keys: 'v', label: text.revoke, run: () => setOpen('revoke') },
    can && !editing && { keys: 'e', label: t.help.keys.edit, run: () => void navigate({ to: `/keys/${encodeURIComponent(hash)}/edit`, search: { at: 'alias' } as never }) },
  ]);
  if (!can) return <Needs role="editor" say>{null}</Needs>;
  return (
    <>
      <Button onClick={() => setOpen('rotate')}>{text.rotate}…</Button>
      <Button onClick={() => setOpen('reset')}>{text.reset}</Button>
      <Button onClick={() => setOpen('policies')}>{text.changePolicies}…</Button>
      <Button kind="danger" onClick={() => setOpen('revoke')}>
        {text.revoke}…
      </Button>
      {open === 'rotate' && <Rotate hash={hash} name={name} onClose={close} />}
      {open === 'reset' && (
        <Confirm title={text.resetTitle} verb={text.reset} onClose={close} onConfirm={() => changed(resetQuota(hash), hash, text.resetDone)}>
          <p>{text.resetText}</p>
        </Confirm>
      )}
      {open === 'policies' && <Policies hash={hash} have={shown.data.apply_policies ?? []} onClose={close} />}
      {open === 'revoke' && (
        <Confirm
          title={text.revokeTitle}
          name={name}
          verb={text.revoke}
          onClose={close}
          onConfirm={async () => {
            await revokeKey(hash);
            toast({ text: text.revoked(name), kind: 'ok' });
            await navigate({ to: '/keys' });
            queryClient.removeQueries({ queryKey: ['keys', hash] }); // it would be read again, and is gone
            await queryClient.invalidateQueries({ queryKey: ['keys', 'list'] });
          }}
        >
          <p>{text.revokeText}</p>
        </Confirm>
      )}
    </>
  );
}

/** Makes a successor, which is shown this once. */
function Rotate({ hash, name, onClose }: { hash: string; name: string; onClose: () => void }) {
  const [grace, setGrace] = useState('24h');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [secret, setSecret] = useState('');
  const once = useRef(randomID());
  const rotate = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const made = await rotateKey(hash, grace, once.current);
      if (made.key) setSecret(made.key);
      else setFailure(new Error(text.lost));
      void queryClient.invalidateQueries({ queryKey: ['keys', hash] });
    } catch (cause) {
      setFailure(cause);
      if ((cause as Failed).status !== 0) once.current = randomID();
    }
    setBusy(false);
  };
  if (secret) return <SecretSheet title={text.newKey(name)} secret={secret} file={`key-${name.replace(/[^\w.-]+/g, '-')}`} onClose={onClose} />;
  return (
    <Dialog
      title={text.rotateTitle}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" busy={busy} onClick={() => void rotate()}>
            {text.rotate}
          </Button>
        </>
      }
    >
      <p>{text.rotateText}</p>
      <SelectField label={text.grace} value={grace} onChange={setGrace} options={text.graces} />
      {failure !== undefined && <ErrorPanel failure={failure} />}
    </Dialog>
  );
}

function Policies({ hash, have, onClose }: { hash: string; have: string[]; onClose: () => void }) {
  const [chosen, setChosen] = useState(have);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const save = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await changed(setPolicies(hash, chosen), hash, text.policiesSaved);
      onClose();
    } catch (cause) {
      setFailure(cause);
      setBusy(false);
    }
  };
  const same = chosen.length === have.length && chosen.every((id, at) => id === have[at]);
  return (
    <Dialog
      title={text.policiesTitle}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" busy={busy} disabled={same} onClick={() => void save()}>
            {text.save}
          </Button>
        </>
      }
    >
      <p className="muted">{text.policiesText}</p>
      <PolicyPicker chosen={chosen} onChange={setChosen} />
      {failure !== undefined && <ErrorPanel failure={failure} />}
    </Dialog>
  );
}

function UsageOf({ hash, otherwise, picker }: { hash: string; otherwise: string; picker?: boolean }) {
  const [url] = useURLState();
  const range = rangeOf(picker ? url : {}, otherwise);
  const query = useRead(['usage', 'key', hash, range.value, url.from, url.to, otherwise], (signal) => usage({ key: hash, ...spanOf(picker ? url : {}, otherwise), step: range.step, group_by: 'reason' }, signal), {
    on: ['usage_until'],
    keep: true,
  });
  return (
    <>
      {picker && <RangePicker range={range} />}
      <Loaded query={query}>{(data) => <Outcomes rows={data.Data} range={range} />}</Loaded>
    </>
  );
}

function RefusalsOf({ hash, few }: { hash: string; few?: boolean }) {
  const [url] = useURLState();
  const range = rangeOf(few ? {} : url, '7d');
  const query = useRead(['refusals', 'key', hash, range.value, url.from, url.to, few], (signal) => refusals({ key: hash, ...spanOf(few ? {} : url, '7d'), page_size: few ? 5 : 100 }, signal), { on: ['usage_until'], keep: true });
  let counts: ReactNode = null;
  if (!few && query.data && query.data.counts.length > 0) {
    counts = <Ranks label={text.counts} rows={query.data.counts.map((one) => ({ key: one.reason, calls: one.calls, name: one.reason, note: reasonText(one.reason) }))} />;
  }
  return (
    <>
      {!few && <RangePicker range={range} />}
      {counts}
      <Loaded query={query}>{(data) => (data.Data.length === 0 ? <p className="muted">{text.noRefusals}</p> : <RefusalTable rows={data.Data} hideKey />)}</Loaded>
    </>
  );
}
