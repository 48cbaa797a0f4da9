import { useState } from 'react';
import type { components } from '../../api.gen';
import { api, data, Failure, queryClient, request, versioned } from '../../api';
import { nameOf, useUser } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Confirm } from '../../parts/Confirm';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, SelectField, SwitchField, TextField } from '../../parts/fields';
import { ListPage } from '../../parts/ListPage';
import { SecretSheet } from '../../parts/SecretSheet';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { t } from '../../text/en';
import { text } from './text';

export const pages = { '/users': Users };

interface Row {
  id: string;
  first_name: string;
  last_name: string;
  email_address: string;
  role: string;
  active?: boolean;
  created_at?: string;
}

interface Shown {
  title: string;
  help: string;
  secret: string;
}

function Users() {
  const me = useUser();
  const [open, setOpen] = useState<{ dialog: 'invite' } | { dialog: 'edit' | 'key' | 'remove'; row: Row }>();
  const [shown, setShown] = useState<Shown>();
  const close = () => setOpen(undefined);
  const changed = () => queryClient.invalidateQueries({ queryKey: ['users'] });
  return (
    <>
      <ListPage<Row>
        title={text.title}
        label={text.title}
        things={text.things}
        queryKey={['users']}
        search={text.search}
        edits={(row) => setOpen({ dialog: 'edit', row })}
        actions={
          <Button kind="primary" onClick={() => setOpen({ dialog: 'invite' })}>
            {text.invite}
          </Button>
        }
        load={async ({ q, page, sort }, signal) => {
          const found = (await data(api.GET('/api/users', { params: { query: { view: 'row', q: q || undefined, p: page, page_size: 50, sort: sort as 'name' | undefined } }, signal }))) as components['schemas']['UserRows'];
          return { rows: found.rows, pages: found.pages, total: found.total, capped: found.total_capped };
        }}
        rowKey={(row) => row.id}
        rowName={(row) => row.email_address}
        columns={[
          {
            id: 'name',
            label: text.name,
            cell: (row) => (
              <>
                {nameOf(row)} {row.id === me.id && <Badge kind="info">{text.you}</Badge>}
              </>
            ),
          },
          { id: 'email', label: text.email, cell: (row) => row.email_address, wide: true, sort: 'name' },
          { id: 'role', label: text.role, cell: (row) => t.role.names[row.role] ?? row.role },
          { id: 'state', label: text.state, wide: true, cell: (row) => (row.active === false ? <Badge kind="warn">{text.inactive}</Badge> : <Badge kind="ok">{text.active}</Badge>) },
          { id: 'created', label: text.created, wide: true, cell: (row) => <Time at={row.created_at} as="day" />, sort: 'created_at' },
          {
            id: 'edit',
            label: '',
            end: true,
            cell: (row) => (
              <Button dense aria-label={text.editNamed(row.email_address)} onClick={() => setOpen({ dialog: 'edit', row })}>
                {text.edit}
              </Button>
            ),
          },
        ]}
        empty={{ title: text.empty, text: text.emptyText }}
      />
      {open?.dialog === 'invite' && <Invite onClose={close} onMade={(secret) => (close(), setShown(secret), void changed())} />}
      {open?.dialog === 'edit' && (
        <Edit row={open.row} self={open.row.id === me.id} onClose={close} onShown={(secret) => (close(), setShown(secret))} onChanged={() => void changed()} onRemove={() => setOpen({ dialog: 'remove', row: open.row })} onKey={() => setOpen({ dialog: 'key', row: open.row })} />
      )}
      {open?.dialog === 'key' && (
        <Confirm
          title={text.keyTitle(open.row.email_address)}
          verb={text.newKey}
          onClose={close}
          onConfirm={async () => {
            const answer = await request<{ access_key: string }>('PUT', `/api/users/${open.row.id}/actions/key/reset`);
            setShown({ title: text.keyTitle(open.row.email_address), help: '', secret: answer.access_key });
          }}
        >
          <p>{text.keyWarn}</p>
        </Confirm>
      )}
      {open?.dialog === 'remove' && (
        <Confirm
          title={text.removeTitle(open.row.email_address)}
          name={open.row.email_address}
          verb={text.remove}
          onClose={close}
          onConfirm={async () => {
            await request('DELETE', `/api/users/${open.row.id}`);
            void changed();
          }}
        >
          <p>{text.removeHelp}</p>
        </Confirm>
      )}
      {shown && (
        <SecretSheet title={shown.title} secret={shown.secret} file="sluice-user" onClose={() => setShown(undefined)}>
          {shown.help && <p>{shown.help}</p>}
        </SecretSheet>
      )}
    </>
  );
}

const people = ['viewer', 'approver', 'editor', 'admin'] as const;
const inviteOptions = [
  { value: 'link', label: text.byLink },
  { value: 'letter', label: text.byLetter },
];
const roleOptions = people.map((value) => ({ value, label: text.roles[value] }));

function Invite({ onClose, onMade }: { onClose: () => void; onMade: (shown?: Shown) => void }) {
  const [row, setRow] = useState({ email_address: '', first_name: '', last_name: '', role: 'viewer', invite: 'link' });
  const [failure, setFailure] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const make = async () => {
    if (busy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      const answer = await request<{ invitation?: string; access_key?: string }>('POST', '/api/users', { body: row });
      if (row.invite === 'letter') {
        toast({ kind: 'ok', text: text.lettered(row.email_address) });
        onMade();
        return;
      }
      onMade({ title: text.invitation(row.email_address), help: text.invitationHelp, secret: answer.invitation ?? answer.access_key ?? '' });
    } catch (cause) {
      setFailure(cause);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={text.invite}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" type="submit" form="invite" busy={busy}>
            {text.inviteVerb}
          </Button>
        </>
      }
    >
      <FieldProblems problems={failure instanceof Failure ? failure.problems : []}>
        <form id="invite" className="stack" onSubmit={(event) => (event.preventDefault(), void make())}>
          <TextField label={text.email} path="email_address" type="email" required value={row.email_address} onChange={(email_address) => setRow({ ...row, email_address })} autoComplete="off" />
          <TextField label={text.first} path="first_name" value={row.first_name} onChange={(first_name) => setRow({ ...row, first_name })} autoComplete="off" />
          <TextField label={text.last} path="last_name" value={row.last_name} onChange={(last_name) => setRow({ ...row, last_name })} autoComplete="off" />
          <SelectField label={text.role} path="role" value={row.role} onChange={(role) => setRow({ ...row, role })} options={roleOptions} help={text.inviting} />
          <SelectField label={text.by} path="invite" value={row.invite} onChange={(how) => setRow({ ...row, invite: how })} options={inviteOptions} />
        </form>
      </FieldProblems>
      {failure !== undefined && <ErrorPanel failure={failure} />}
    </Dialog>
  );
}

function Edit(p: { row: Row; self: boolean; onClose: () => void; onShown: (shown: Shown) => void; onChanged: () => void; onRemove: () => void; onKey: () => void }) {
  const [row, setRow] = useState(p.row);
  const [failure, setFailure] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<void>) => {
    if (busy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await work();
    } catch (cause) {
      setFailure(cause);
    } finally {
      setBusy(false);
    }
  };
  const save = () =>
    attempt(async () => {
      const now = await versioned(api.GET('/api/users/{id}', { params: { path: { id: row.id } } }));
      const { first_name, last_name, email_address, role, active } = row;
      await request('PUT', `/api/users/${row.id}`, { body: { first_name, last_name, email_address, role, active }, headers: now.etag ? { 'If-Match': now.etag } : {} });
      toast({ kind: 'ok', text: text.saved });
      p.onChanged();
      p.onClose();
    });
  const invite = () =>
    attempt(async () => {
      const { link } = await request<{ link: string }>('POST', `/api/users/${row.id}/actions/invite`);
      p.onShown({ title: text.invitation(row.email_address), help: text.invitationHelp, secret: link });
    });
  const letter = () =>
    attempt(async () => {
      await request('POST', `/api/users/${row.id}/actions/invite`, { body: { by: 'letter' } });
      toast({ kind: 'ok', text: text.lettered(row.email_address) });
      p.onClose();
    });
  const machine = p.row.role === 'gateway';
  return (
    <Dialog
      title={text.editTitle(p.row.email_address)}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind="primary" type="submit" form="edit-user" busy={busy}>
            {t.save}
          </Button>
        </>
      }
    >
      <FieldProblems problems={failure instanceof Failure ? failure.problems : []}>
        <form id="edit-user" className="stack" onSubmit={(event) => (event.preventDefault(), void save())}>
          <TextField label={text.email} path="email_address" type="email" required value={row.email_address} onChange={(email_address) => setRow({ ...row, email_address })} autoComplete="off" />
          <TextField label={text.first} path="first_name" value={row.first_name} onChange={(first_name) => setRow({ ...row, first_name })} autoComplete="off" />
          <TextField label={text.last} path="last_name" value={row.last_name} onChange={(last_name) => setRow({ ...row, last_name })} autoComplete="off" />
          <SelectField label={text.role} path="role" value={row.role} onChange={(role) => setRow({ ...row, role })} options={machine ? [{ value: 'gateway', label: text.roles.gateway }] : roleOptions} disabled={p.self} />
          <SwitchField label={text.mayIn} path="active" value={row.active !== false} onChange={(active) => setRow({ ...row, active })} disabled={p.self} />
        </form>
      </FieldProblems>
      {failure !== undefined && <ErrorPanel failure={failure} />}
      <div className="row">
        {!machine && (
          <Button disabled={busy} onClick={() => void invite()}>
            {text.again}
          </Button>
        )}
        {!machine && (
          <Button disabled={busy} onClick={() => void letter()}>
            {text.againLetter}
          </Button>
        )}
        <Button disabled={busy} onClick={p.onKey}>
          {text.newKey}
        </Button>
        {!p.self && (
          <Button kind="danger" disabled={busy} onClick={p.onRemove}>
            {text.remove}…
          </Button>
        )}
      </div>
    </Dialog>
  );
}
