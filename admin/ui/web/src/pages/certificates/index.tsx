import { useState } from 'react';
import type { components } from '../../api.gen';
import { request, useRead, useWrite } from '../../api';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { ID } from '../../parts/Copy';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { TextAreaField } from '../../parts/fields';
import { ListPage, type Column } from '../../parts/ListPage';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import css from './certificates.module.css';
import { text } from './text';

export const pages = { '/certificates': Certificates };

interface Certificate {
  id: string;
  has_private: boolean;
  is_ca: boolean;
  may_serve: boolean;
  subject: string;
  issuer: string;
  dns_names: string[] | null;
  not_before: string;
  not_after: string;
}

const soon = 30 * 24 * 3600_000;

function Until({ at }: { at: string }) {
  const left = new Date(at).getTime() - Date.now();
  return (
    <span className="row">
      {left < 0 ? <Badge kind="danger">{text.ended}</Badge> : left < soon && <Badge kind="warn">{text.soon}</Badge>}
      <Time at={at} as={left < soon ? 'ago' : 'day'} />
    </span>
  );
}

const columns: Column<Certificate>[] = [
  { id: 'subject', label: text.columns.subject, cell: (row) => row.subject || row.id },
  { id: 'names', label: text.columns.names, cell: (row) => (row.dns_names ?? []).join(', '), wide: true },
  { id: 'use', label: text.columns.use, cell: (row) => [row.is_ca ? text.authority : text.plain, row.has_private && text.key, row.has_private && !row.may_serve && text.notServed].filter(Boolean).join(', ') },
  { id: 'id', label: text.columns.id, cell: (row) => <ID value={row.id} />, wide: true },
  { id: 'until', label: text.columns.until, cell: (row) => <Until at={row.not_after} /> },
];

function Certificates() {
  const [adding, setAdding] = useState(false);
  const may = useCan('editor');
  return (
    <>
      <ListPage<Certificate>
        title={text.title}
        label={text.label}
        things={text.things}
        actions={
          <Needs role="editor" say>
            <Button kind="primary" onClick={() => setAdding(true)}>
              {text.add}
            </Button>
          </Needs>
        }
        queryKey={['certificates']}
        load={async (_, signal) => ({
          rows: (await request<{ certificates: Certificate[] | null }>('GET', '/api/certs', { signal })).certificates ?? [],
        })}
        columns={columns}
        rowKey={(row) => row.id}
        rowName={(row) => row.subject || row.id}
        bulk={may ? [{ label: text.remove, danger: true, run: (row) => request('DELETE', `/api/certs/${encodeURIComponent(row.id)}`) }] : []}
        empty={text.empty}
      />
      <Issued />
      {adding && <Add onClose={() => setAdding(false)} />}
    </>
  );
}

/** The certificates that gateways obtain by ACME, if there are any. */
function Issued() {
  const list = useRead(['certificates', 'acme'], (signal) => request<components['schemas']['AcmeList']>('GET', '/api/acme', { signal }), { every: 30_000 });
  const may = useCan('admin');
  const again = useWrite((domain: string) => request('DELETE', `/api/acme/domains/${encodeURIComponent(domain)}`), {
    changes: [['certificates', 'acme']],
    done: (_, domain) => toast({ kind: 'ok', text: text.acme.said(domain) }),
  });
  if (list.data && !list.data.certificates?.length) return null;
  return (
    <div className={css.issued}>
      <Card title={text.acme.title}>
        {again.isError && <ErrorPanel failure={again.error} />}
        <Loaded query={list} what={text.acme.title}>
          {({ certificates }) => (
            <div className={css.scroll} tabIndex={0} role="region" aria-label={text.acme.title}>
              <table>
                <thead>
                  <tr>
                    <th scope="col">{text.acme.domain}</th>
                    <th scope="col">{text.acme.until}</th>
                    <th scope="col">{text.acme.state}</th>
                    <th scope="col">{text.acme.next}</th>
                  </tr>
                </thead>
                <tbody>
                  {certificates?.map((row) => (
                    <tr key={row.domain}>
                      <td>{row.domain}</td>
                      <td>{row.not_after ? <Until at={row.not_after} /> : text.acme.none}</td>
                      <td className={css.error}>
                        {row.failures === 0 ? <Badge kind="ok">{text.acme.ok}</Badge> : <Badge kind={row.not_after ? 'warn' : 'danger'}>{text.acme.failed(row.failures)}</Badge>} {row.error}
                      </td>
                      <td>
                        {row.next_try && (new Date(row.next_try).getTime() > Date.now() ? <Time at={row.next_try} /> : text.acme.now)}{' '}
                        {row.failures > 0 && may && (
                          <Button dense busy={again.isPending} onClick={() => again.mutate(row.domain)}>
                            {text.acme.again}
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
    </div>
  );
}

function Add({ onClose }: { onClose: () => void }) {
  const [pem, setPEM] = useState('');
  const write = useWrite(() => request('POST', '/api/certs', { body: { pem }, once: true }), {
    changes: [['certificates']],
    done: () => {
      toast({ kind: 'ok', text: text.added });
      onClose();
    },
  });
  return (
    <Dialog
      title={text.add}
      onClose={onClose}
      wide
      actions={
        <Button kind="primary" disabled={pem.trim() === ''} busy={write.isPending} onClick={() => write.mutate(undefined)}>
          {text.form.verb}
        </Button>
      }
    >
      <div className="stack">
        <label>
          {text.form.file} <input type="file" accept=".pem,.crt,.cer,.key" onChange={(event) => void event.target.files?.[0]?.text().then(setPEM)} />
        </label>
        <TextAreaField label={text.form.pem} help={text.form.help} path="pem" value={pem} onChange={setPEM} code rows={10} />
        {write.isError && <ErrorPanel failure={write.error} />}
      </div>
    </Dialog>
  );
}
