import { Fragment, useState } from 'react';
import type { components } from '../../api.gen';
import { request, useWrite } from '../../api';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { SecretField, TextField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { ListPage, type Column } from '../../parts/ListPage';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { text } from './text';

export const pages = { '/secrets': Secrets };

type Secret = NonNullable<components['schemas']['SecretList']['secrets']>[number];

const at = (name: string) => `/api/secrets/${encodeURIComponent(name)}`;

const columns: Column<Secret>[] = [
  { id: 'name', label: text.columns.name, cell: (row) => <code>{row.name}</code> },
  {
    id: 'used',
    label: text.columns.used,
    cell: (row) =>
      (row.used_by ?? []).length === 0 ? (
        <span className="muted">{text.unused}</span>
      ) : (
        row.used_by!.map((one, n) => (
          <Fragment key={one.api_id}>
            {n > 0 && ', '}
            <Link to={`/apis/${encodeURIComponent(one.api_id)}`}>{one.name || one.api_id}</Link>
          </Fragment>
        ))
      ),
  },
  {
    id: 'changed',
    label: text.columns.changed,
    wide: true,
    cell: (row) => (
      <>
        {row.updated_by && `${row.updated_by}, `}
        <Time at={row.updated_at} />
      </>
    ),
  },
];

function Secrets() {
  const [setting, setSetting] = useState(false);
  const verb = (
    <Button kind="primary" onClick={() => setSetting(true)}>
      {text.set}
    </Button>
  );
  return (
    <>
      <ListPage<Secret>
        title={text.title}
        label={text.title}
        things={text.things}
        actions={verb}
        queryKey={['secrets']}
        on={['revision']}
        load={async (_, signal) => ({ rows: (await request<components['schemas']['SecretList']>('GET', '/api/secrets', { signal })).secrets ?? [] })}
        columns={columns}
        rowKey={(row) => row.name}
        rowName={(row) => row.name}
        bulk={[{ label: text.remove, danger: true, run: (row) => request('DELETE', at(row.name)) }]}
        empty={text.empty}
      />
      {setting && <SetSecret onClose={() => setSetting(false)} />}
    </>
  );
}

/** The value is in the state of this dialog only, and gone with it. */
function SetSecret({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const write = useWrite(() => request('PUT', at(name.trim()), { body: { value } }), {
    changes: [['secrets']],
    done: () => {
      toast({ kind: 'ok', text: text.done(name.trim()) });
      onClose();
    },
  });
  return (
    <Dialog
      title={text.set}
      onClose={onClose}
      actions={
        <Button kind="primary" disabled={name.trim() === '' || value === ''} busy={write.isPending} onClick={() => write.mutate(undefined)}>
          {text.form.verb}
        </Button>
      }
    >
      <form className="stack" onSubmit={(event) => (event.preventDefault(), name.trim() !== '' && value !== '' && !write.isPending && write.mutate(undefined))}>
        <TextField label={text.form.name} help={text.form.nameHelp} path="name" required code autoComplete="off" spellCheck={false} value={name} onChange={setName} />
        <SecretField label={text.form.value} help={text.form.valueHelp} path="value" required autoComplete="off" value={value} onChange={setValue} />
        {write.isError && <ErrorPanel failure={write.error} />}
      </form>
    </Dialog>
  );
}
