import { queryClient, request, useRead, useWrite } from '../../api';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { Card, Facts } from '../../parts/Card';
import { CodeEditor } from '../../parts/code';
import { ID } from '../../parts/Copy';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { List, type Column } from '../../parts/ListPage';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { one, readList, type Delivery, type Done } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { Split } from '../portal/Split';
import { text } from './text';

export const pages = { '/deliveries': Deliveries };

const kinds = { failed: 'danger', pending: 'info', sending: 'info', done: 'ok', kept: 'plain' } as const;
const resend = (id: string) => request<Done>('POST', `${one('deliveries', id)}/replay`);

function Deliveries() {
  const [url, setURL] = useURLState();
  const may = useCan('approver');
  const columns: Column<Delivery>[] = [
    { id: 'event', label: text.columns.event, cell: (row) => row.event },
    { id: 'target', label: text.columns.target, cell: (row) => (row.kind === 'webhook' ? text.kinds.webhook : row.target) },
    { id: 'state', label: text.columns.state, cell: (row) => <Badge kind={kinds[row.state]}>{text.states[row.state]}</Badge> },
    { id: 'tries', label: text.columns.tries, cell: (row) => row.attempts, end: true, wide: true },
    { id: 'created', label: text.columns.created, cell: (row) => <Time at={row.date_created} />, end: true },
  ];
  return (
    <Page title={text.title} note={text.note}>
      {(url.webhook || url.developer) && (
        <p className="row">
          {url.webhook ? text.ofWebhook : text.ofDeveloper}
          <Button dense onClick={() => setURL({ webhook: '', developer: '', p: '', open: '' })}>
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
          <List<Delivery>
            label={text.label}
            things={text.things}
            queryKey={['deliveries', 'list', url.webhook ?? '', url.developer ?? '']}
            on={['failed_deliveries']}
            load={(query, signal) => readList<Delivery>('deliveries', { p: query.page, delivery_state: query.filters.state, webhook: url.webhook, developer: url.developer }, signal)}
            columns={url.open ? columns.filter((column) => !column.wide && column.id !== 'created') : columns}
            rowKey={(row) => row.id}
            rowName={(row) => `${row.event} ${row.target}`}
            rowOpens={(row) => ({ open: row.id })}
            openKey={url.open ?? ''}
            filters={[{ name: 'state', label: text.filters.state, initial: 'failed', options: Object.entries(text.filters.states).map(([value, label]) => ({ value, label })) }]}
            bulk={may ? [{ label: text.resend, run: (row) => resend(row.id) }] : []}
            empty={text.empty}
          />
        }
        panel={<Shown key={url.open} id={url.open ?? ''} />}
      />
    </Page>
  );
}

function Shown({ id }: { id: string }) {
  const query = useRead(['deliveries', 'one', id], (signal) => request<Delivery>('GET', one('deliveries', id), { signal }), { on: ['failed_deliveries'] });
  const again = useWrite(() => resend(id), {
    done: () => {
      toast({ kind: 'ok', text: text.resent(1) });
      void queryClient.invalidateQueries({ queryKey: ['deliveries'] });
    },
  });
  return (
    <Loaded query={query} what={text.what}>
      {(it) => (
        <>
          <div className="row">
            <h2>{it.event}</h2>
            <Badge kind={kinds[it.state]}>{text.states[it.state]}</Badge>
          </div>
          {it.state === 'kept' ? (
            <Needs role="admin" say>
              <div>
                <LinkButton to="/mailbox" search={{ open: it.id }}>
                  {text.mailbox}
                </LinkButton>
              </div>
            </Needs>
          ) : (
            <Needs role="approver" say>
              <div>
                <Button kind={it.state === 'failed' ? 'primary' : 'plain'} busy={again.isPending} onClick={() => again.mutate(undefined)}>
                  {text.resend}
                </Button>
              </div>
            </Needs>
          )}
          {again.isError && <ErrorPanel failure={again.error} what={text.resending} />}
          <Facts
            of={[
              [text.facts.kind, text.kinds[it.kind]],
              [text.facts.target, it.target],
              [text.facts.status, it.status || text.facts.none],
              ...(it.error ? [[text.facts.error, it.error] as [string, string]] : []),
              [text.facts.made, <Time key="made" at={it.date_created} as="full" />],
              [text.facts.last, <Time key="last" at={it.last_attempt} as="full" />],
              ...(it.next_attempt ? [[text.facts.next, <Time key="next" at={it.next_attempt} />] as [string, React.ReactNode]] : []),
              [text.facts.id, <ID key="id" value={it.id} label={text.facts.id} />],
            ]}
          />
          {(it.tries?.length ?? 0) > 0 && (
            <Card title={text.tries}>
              <div className={portalCSS.scroll} tabIndex={0} role="group" aria-label={text.tries}>
                <table className={portalCSS.table}>
                  <thead>
                    <tr>
                      <th scope="col">{text.tryColumns.at}</th>
                      <th scope="col">{text.tryColumns.status}</th>
                      <th scope="col">{text.tryColumns.took}</th>
                      <th scope="col">{text.tryColumns.error}</th>
                    </tr>
                  </thead>
                  <tbody>
                    {it.tries!.map((attempt, at) => (
                      <tr key={at}>
                        <td>
                          <Time at={attempt.at} as="full" />
                        </td>
                        <td>{attempt.status || text.facts.none}</td>
                        <td>{attempt.milliseconds === undefined ? '' : text.milliseconds(attempt.milliseconds)}</td>
                        <td>{attempt.error}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </Card>
          )}
          <Card title={text.payload}>
            {it.payload === undefined || it.kind === 'letter' ? <p className="muted">{text.noPayload}</p> : <CodeEditor label={text.payload} readOnly language="json" lines={14} value={prettyOf(it.payload)} />}
          </Card>
        </>
      )}
    </Loaded>
  );
}

function prettyOf(payload: string): string {
  try {
    return JSON.stringify(JSON.parse(payload), null, 2);
  } catch {
    return payload;
  }
}
