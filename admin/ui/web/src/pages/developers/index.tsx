import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../api.gen';
import { Failure, queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { randomID } from '../../lib';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, SecretField, TextField } from '../../parts/fields';
import { ListPage, type Column } from '../../parts/ListPage';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { number, t } from '../../text/en';
import { FieldsField } from '../portal/FieldsField';
import { portal, type Configuration, type Done } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { DeveloperPage } from './Developer';
import { text } from './text';

export const pages = { '/developers': Developers, '/developers/$id': DeveloperPage };

type Row = components['schemas']['DeveloperRow'];

export function DeveloperState({ developer: d }: { developer: { inactive: boolean; verified?: boolean } }) {
  return (
    <span className="row">
      {d.inactive ? <Badge kind="warn">{text.states.inactive}</Badge> : <Badge kind="ok">{text.states.active}</Badge>}
      {d.verified === false && <Badge kind="warn">{text.states.unverified}</Badge>}
    </span>
  );
}

function Developers() {
  const [creating, setCreating] = useState(false);
  const may = useCan('approver');
  const columns: Column<Row>[] = [
    { id: 'email', label: text.columns.email, cell: (row) => row.email, sort: 'name' },
    { id: 'state', label: text.columns.state, cell: (row) => <DeveloperState developer={row} /> },
    { id: 'keys', label: text.columns.keys, cell: (row) => number(row.key_count), end: true },
    { id: 'login', label: text.columns.login, cell: (row) => <Time at={row.last_login_date ?? undefined} />, wide: true },
    { id: 'created', label: text.columns.created, cell: (row) => <Time at={row.date_created} as="day" />, sort: 'created_at', wide: true },
  ];
  const create = may && (
    <Button kind="primary" onClick={() => setCreating(true)}>
      {text.create}
    </Button>
  );
  return (
    <>
      <ListPage<Row>
        title={text.title}
        label={text.title}
        things={text.things}
        actions={create}
        queryKey={['developers', 'list']}
        load={async (query, signal) => {
          const found = await request<components['schemas']['DeveloperRows']>('GET', `${portal}/developers`, {
            query: { view: 'row', page_size: 50, q: query.q, p: query.page, sort: query.sort, inactive: query.filters.inactive },
            signal,
          });
          return { rows: found.rows, pages: found.pages, total: found.total, capped: found.total_capped };
        }}
        columns={columns}
        rowKey={(row) => row.id}
        rowName={(row) => row.email}
        rowTo={(row) => `/developers/${encodeURIComponent(row.id)}`}
        edits={may && 'email'}
        search={text.search}
        filters={[{ name: 'inactive', label: text.filters.inactive, options: Object.entries(text.filters.states).map(([value, label]) => ({ value, label })) }]}
        empty={{ ...text.empty, action: create }}
      />
      {creating && <Create onClose={() => setCreating(false)} />}
    </>
  );
}

function Create({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [fields, setFields] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [once] = useState(randomID);
  const navigate = useNavigate();
  const config = useRead(['portal', 'configuration'], (signal) => request<Configuration>('GET', `${portal}/configuration`, { signal }));
  const create = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const body = { email: email.trim(), fields, ...(password && { password }) };
      const { Message } = await request<Done>('POST', `${portal}/developers`, { body, once });
      toast({ kind: 'ok', text: text.created(body.email) });
      void queryClient.invalidateQueries({ queryKey: ['developers'] });
      onClose();
      void navigate({ to: `/developers/${encodeURIComponent(Message)}` });
    } catch (cause) {
      setFailure(cause);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={text.createTitle}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" busy={busy} type="submit" form="new-developer">
            {text.createVerb}
          </Button>
        </>
      }
    >
      <form id="new-developer" className={portalCSS.form} onSubmit={(event) => (event.preventDefault(), void create())}>
        <FieldProblems problems={failure instanceof Failure ? failure.problems : []}>
          <p className="muted">{text.createHelp}</p>
          <TextField label={text.email} path="email" type="email" value={email} onChange={setEmail} required autoComplete="off" autoFocus />
          <SecretField label={text.password} help={text.passwordNew} path="password" value={password} onChange={setPassword} autoComplete="new-password" />
          <FieldsField label={text.details.fields} path="fields" known={config.data?.signup_fields ?? []} value={fields} onChange={setFields} />
        </FieldProblems>
        {failure !== undefined && <ErrorPanel failure={failure} what={text.createTitle} />}
      </form>
    </Dialog>
  );
}
