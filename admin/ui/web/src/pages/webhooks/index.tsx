import { useState } from 'react';
import { queryClient, request, respond, useRead } from '../../api';
import { useCan } from '../../app/session';
import { useShortcuts } from '../../app/shortcuts';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { Facts } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { ID } from '../../parts/Copy';
import { Link } from '../../parts/Link';
import { List, type Column } from '../../parts/ListPage';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { SecretSheet } from '../../parts/SecretSheet';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { t } from '../../text/en';
import { one, readList, type Done } from '../portal/model';
import { Split } from '../portal/Split';
import { Edit, Rotate, type Made } from './dialogs';
import { text } from './text';

export const pages = { '/webhooks': Webhooks };

export interface Webhook {
  id: string;
  developer_id: string;
  name: string;
  url: string;
  events: string[];
  enabled: boolean;
  disabled_at?: string;
  disabled_for?: string;
  failing_since?: string;
  former_secret_until?: string;
  date_created: string;
}

const nameOf = (webhook: Webhook) => webhook.name || webhook.url;

const columns: Column<Webhook>[] = [
  { id: 'name', label: text.columns.name, cell: nameOf },
  { id: 'url', label: text.columns.url, cell: (row) => row.url, wide: true },
  { id: 'whose', label: text.columns.whose, cell: (row) => (row.developer_id ? text.developer : text.mine), wide: true },
  { id: 'state', label: text.columns.state, cell: (row) => <State webhook={row} /> },
  { id: 'created', label: text.columns.created, cell: (row) => <Time at={row.date_created} as="day" />, end: true, wide: true },
];

function State({ webhook }: { webhook: Webhook }) {
  if (!webhook.enabled) return <Badge kind="warn">{text.states.off}</Badge>;
  return webhook.failing_since ? <Badge kind="danger">{text.states.failing}</Badge> : <Badge kind="ok">{text.states.on}</Badge>;
}

function Webhooks() {
  const [url, setURL] = useURLState();
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<Made>();
  const create = useCan('editor') && (
    <Button kind="primary" onClick={() => setCreating(true)}>
      {text.create}
    </Button>
  );
  return (
    <Page title={text.title} note={text.note} actions={create}>
      {url.developer && (
        <p className="row">
          {text.ofDeveloper} <Link to={`/developers/${encodeURIComponent(url.developer)}`}>{text.developer}</Link>
          <Button dense onClick={() => setURL({ developer: '', p: '', open: '' })}>
            {text.all}
          </Button>
        </p>
      )}
      <Split
        label={text.what}
        back={text.back}
        open={Boolean(url.open)}
        onClose={() => setURL({ open: '' })}
        list={
          <List<Webhook>
            label={text.label}
            things={text.things}
            queryKey={['webhooks', 'list', url.developer ?? '']}
            load={(query, signal) => readList<Webhook>('webhooks', { q: query.q, p: query.page, developer: url.developer }, signal)}
            columns={url.open ? columns.filter((column) => column.id === 'name' || column.id === 'state') : columns}
            rowKey={(row) => row.id}
            rowName={nameOf}
            rowOpens={(row) => ({ open: row.id })}
            openKey={url.open ?? ''}
            search={text.search}
            empty={{ ...text.empty, action: create }}
          />
        }
        panel={<Shown key={url.open} id={url.open ?? ''} onMade={setMade} onClose={() => setURL({ open: '' })} />}
      />
      {creating && (
        <Edit
          onClose={() => setCreating(false)}
          onDone={(answer, secret) => {
            setCreating(false);
            void queryClient.invalidateQueries({ queryKey: ['webhooks'] });
            if (secret) setMade({ ...secret, open: answer.Message });
          }}
        />
      )}
      {made && (
        <SecretSheet
          title={text.sheet(made.name)}
          secret={made.secret}
          file="webhook-secret"
          onClose={() => {
            setMade(undefined);
            if (made.open) setURL({ open: made.open });
          }}
        >
          <p>{text.sheetHelp}</p>
        </SecretSheet>
      )}
    </Page>
  );
}

function Shown({ id, onMade, onClose }: { id: string; onMade: (made: Made) => void; onClose: () => void }) {
  const [dialog, setDialog] = useState<'edit' | 'secret' | 'remove'>();
  const editor = useCan('editor');
  const approver = useCan('approver');
  const close = () => setDialog(undefined);
  const again = () => void queryClient.invalidateQueries({ queryKey: ['webhooks'] });
  const query = useRead(['webhooks', 'one', id], async (signal) => {
    const answer = await respond('GET', one('webhooks', id), { signal });
    return { webhook: (await answer.json()) as Webhook, etag: answer.headers.get('ETag') ?? '' };
  });
  const may = query.data?.webhook.developer_id ? approver : editor;
  useShortcuts([may && { keys: 'e', label: t.help.keys.edit, run: () => setDialog('edit') }]);
  const call = (verb: 'ping' | 'enable' | 'disable', said: string) =>
    void request<Done>('POST', `${one('webhooks', id)}/${verb}`).then(
      () => (toast({ kind: 'ok', text: said }), again()),
      (cause: Error) => toast({ kind: 'danger', text: cause.message }),
    );
  return (
    <Loaded query={query} what={text.what}>
      {({ webhook: it, etag }) => (
        <>
          <div className="row">
            <h2>{nameOf(it)}</h2>
            <State webhook={it} />
          </div>
          <div className="row">
            <Needs role={it.developer_id ? 'approver' : 'editor'} say>
              <Button kind="primary" disabled={!it.enabled} onClick={() => call('ping', text.pinged)}>
                {text.ping}
              </Button>
              {it.enabled ? <Button onClick={() => call('disable', text.disabled)}>{text.disable}</Button> : <Button onClick={() => call('enable', text.enabled)}>{text.enable}</Button>}
              <Button onClick={() => setDialog('edit')}>{text.edit}</Button>
              <Button onClick={() => setDialog('secret')}>{text.secret}</Button>
              <Button kind="danger" onClick={() => setDialog('remove')}>
                {text.remove}
              </Button>
            </Needs>
          </div>
          <Facts
            of={[
              [text.facts.url, it.url],
              [text.facts.events, it.events.includes('*') ? text.every : it.events.join(', ')],
              [text.facts.whose, it.developer_id ? <Link key="whose" to={`/developers/${encodeURIComponent(it.developer_id)}`}>{text.developer}</Link> : text.mine],
              [text.facts.since, <Time key="since" at={it.date_created} as="full" />],
              ...(it.failing_since ? [[text.facts.failing, <Time key="failing" at={it.failing_since} as="full" />] as [string, React.ReactNode]] : []),
              ...(it.disabled_at ? [[text.facts.off, <Time key="off" at={it.disabled_at} as="full" />] as [string, React.ReactNode]] : []),
              ...(it.disabled_for ? [[text.facts.why, it.disabled_for] as [string, string]] : []),
              ...(it.former_secret_until ? [[text.facts.former, <Time key="former" at={it.former_secret_until} as="full" />] as [string, React.ReactNode]] : []),
              [text.facts.id, <ID key="id" value={it.id} label={text.facts.id} />],
            ]}
          />
          <div>
            <LinkButton to="/deliveries" search={{ webhook: it.id, state: 'any' }}>
              {text.deliveries}
            </LinkButton>
          </div>
          {dialog === 'edit' && <Edit webhook={it} etag={etag} onClose={close} onDone={() => (close(), toast({ kind: 'ok', text: text.saved }), again())} />}
          {dialog === 'secret' && (
            <Rotate
              webhook={it}
              onClose={close}
              onDone={(secret) => {
                close();
                again();
                onMade({ name: nameOf(it), secret });
              }}
            />
          )}
          {dialog === 'remove' && (
            <Confirm
              title={text.removeTitle(nameOf(it))}
              verb={text.removeVerb}
              onClose={close}
              onConfirm={async () => {
                await request('DELETE', one('webhooks', id), { headers: { 'If-Match': etag } });
                toast({ kind: 'ok', text: text.removed });
                onClose();
                again();
              }}
            >
              <p>{text.removeHelp}</p>
            </Confirm>
          )}
        </>
      )}
    </Loaded>
  );
}
