import { Fragment, useState } from 'react';
import { api, data, Failure, useRead, useWrite, type components } from '../../api';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Facts } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { ID } from '../../parts/Copy';
import { EmptyState } from '../../parts/EmptyState';
import { SelectField, TextField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { cx } from '../../lib';
import { number, t } from '../../text/en';
import css from './connections.module.css';
import { text } from './text';

export const pages = { '/connections': Connections };

type Connection = components['schemas']['Connection'];
type Operation = components['schemas']['Operation'];

/** How often what is open is read again, in milliseconds. */
const every = 5_000;

const nameOf = (row: Connection) => text.named(row.api_id, row.address);

function Connections() {
  const [url, setURL] = useURLState();
  const [ending, setEnding] = useState<Connection>();
  const query = useRead(
    ['connections', 'list', url.api, url.key, url.gateway, url.after],
    (signal) => data(api.GET('/api/connections', { params: { query: { api_id: url.api, key_hash: url.key, gateway: url.gateway, after: url.after, page_size: 50 } }, signal })),
    { every, keep: true },
  );
  const narrowed = !!(url.api || url.key || url.gateway);
  const clear = () => setURL({ api: '', key: '', gateway: '', after: '' });
  return (
    <Page title={text.title} note={query.data && `${text.note(query.data.connections?.length ?? 0, query.data.total)}, ${text.live}`}>
      <Filters key={`${url.api} ${url.key} ${url.gateway}`} clear={narrowed ? clear : undefined} />
      <Loaded query={query} what={text.label}>
        {(list) => (
          <>
            {!!list.silent?.length && (
              <p className={css.silent}>
                <Badge kind="warn">{text.silent(list.silent)}</Badge>
              </p>
            )}
            {!list.connections?.length ? (
              <EmptyState title={narrowed || url.after ? text.noMatch : text.none} text={narrowed || url.after ? '' : text.noneText} action={narrowed ? <Button onClick={clear}>{text.clear}</Button> : undefined} />
            ) : (
              <Table rows={list.connections} onEnd={setEnding} />
            )}
            <div className="row">
              {url.after && <Button onClick={() => setURL({ after: '', open: '' }, { push: true })}>{text.newest}</Button>}
              {list.next && <Button onClick={() => setURL({ after: list.next, open: '' }, { push: true })}>{text.more}</Button>}
            </div>
          </>
        )}
      </Loaded>
      {ending && <End connection={ending} onClose={() => setEnding(undefined)} />}
    </Page>
  );
}

function Filters({ clear }: { clear?: () => void }) {
  const [url, setURL] = useURLState();
  const [one, setOne] = useState(url.api ?? '');
  const [key, setKey] = useState(url.key ?? '');
  const [gateway, setGateway] = useState(url.gateway ?? '');
  return (
    <form
      role="search"
      className={css.filters}
      onSubmit={(event) => {
        event.preventDefault();
        setURL({ api: one.trim(), key: key.trim(), gateway: gateway.trim(), after: '', open: '' });
      }}
    >
      <TextField label={text.filterAPI} value={one} onChange={setOne} type="search" />
      <TextField label={text.filterKey} value={key} onChange={setKey} type="search" code />
      <TextField label={text.filterGateway} value={gateway} onChange={setGateway} type="search" />
      <Button type="submit">{text.apply}</Button>
      {clear && <Button onClick={clear}>{text.clear}</Button>}
    </form>
  );
}

const columns: { label: string; wide?: boolean; end?: boolean }[] = [
  { label: text.columns.api },
  { label: text.columns.key },
  { label: text.columns.client, wide: true },
  { label: text.columns.gateway, wide: true },
  { label: text.columns.since, wide: true },
  { label: text.columns.last, wide: true },
  { label: text.columns.messages, wide: true, end: true },
  { label: text.columns.queued, wide: true, end: true },
  { label: text.columns.operations },
];

function Table({ rows, onEnd }: { rows: Connection[]; onEnd: (row: Connection) => void }) {
  const [url, setURL] = useURLState();
  return (
    <div className={css.scroll} tabIndex={0} role="region" aria-label={text.label}>
      <table className={css.table} aria-label={text.label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.label} scope="col" className={cx(column.wide && css.wide, column.end && css.end)}>
                {column.label}
              </th>
            ))}
            <th scope="col">
              <span className="sr-only">{text.columns.verbs}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Fragment key={row.id}>
              <Row row={row} open={url.open === row.id} onOpen={() => setURL({ open: url.open === row.id ? '' : row.id })} onEnd={() => onEnd(row)} />
              {url.open === row.id && (
                <tr className={css.detail} id={`operations-${row.id}`}>
                  <td colSpan={columns.length + 1}>
                    <Detail row={row} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ row, open, onOpen, onEnd }: { row: Connection; open: boolean; onOpen: () => void; onEnd: () => void }) {
  return (
    <tr>
      <td>
        <Link to={`/apis/${encodeURIComponent(row.api_id)}`}>{row.api_id}</Link>
      </td>
      <td>
        {row.key_hash ? (
          <Link to={`/keys/${encodeURIComponent(row.key_hash)}`} className={row.key_alias ? undefined : 'mono'}>
            {row.key_alias || row.key_hash.slice(0, 12)}
          </Link>
        ) : (
          <span className="muted">{text.noKey}</span>
        )}
      </td>
      <td className={css.wide}>{row.address}</td>
      <td className={css.wide}>{row.gateway}</td>
      <td className={css.wide}>
        <Time at={row.since} />
      </td>
      <td className={css.wide}>{row.last_message ? <Time at={row.last_message} /> : <span className="muted">{t.nothing}</span>}</td>
      <td className={cx(css.wide, css.end)}>
        {number(row.messages_in)} / {number(row.messages_out)}
      </td>
      <td className={cx(css.wide, css.end)}>{text.bytes(row.queued_bytes)}</td>
      <td>
        <Button dense kind="quiet" aria-expanded={open} aria-controls={open ? `operations-${row.id}` : undefined} aria-label={text.show(row.active_operations, nameOf(row))} onClick={onOpen}>
          {text.operations(row.active_operations)}
        </Button>
      </td>
      <td className={css.end}>
        <Needs role="editor">
          <Button dense kind="danger" aria-label={text.endNamed(nameOf(row))} onClick={onEnd}>
            {text.end}
          </Button>
        </Needs>
      </td>
    </tr>
  );
}

/** One connection with its operations; undefined once it has ended. */
function readOne(id: string, signal: AbortSignal): Promise<Connection | null> {
  return data(api.GET('/api/connections/{id}', { params: { path: { id } }, signal })).catch((cause: unknown) => {
    if (cause instanceof Failure && cause.status === 404) return null;
    throw cause;
  });
}

function Detail({ row }: { row: Connection }) {
  const query = useRead(['connections', row.id], (signal) => readOne(row.id, signal), { every });
  return (
    <Loaded query={query} what={nameOf(row)} lines={2}>
      {(one) =>
        one === null ? (
          <p>{text.gone}</p>
        ) : (
          <>
            <Facts
              of={[
                [text.columns.client, one.address],
                [text.protocol, one.protocol],
                [text.columns.since, <Time at={one.since} as="full" />],
                [text.columns.messages, `${number(one.messages_in)} / ${number(one.messages_out)}`],
                [text.handshake, <ID value={one.request_id} />],
              ]}
            />
            {one.operations?.length ? <Operations of={one.operations} /> : <p className="muted">{text.idle}</p>}
          </>
        )
      }
    </Loaded>
  );
}

function Operations({ of }: { of: Operation[] }) {
  const head = text.operation;
  return (
    <table className={css.table} aria-label={text.columns.operations}>
      <thead>
        <tr>
          <th scope="col">{head.name}</th>
          <th scope="col">{head.kind}</th>
          <th scope="col">{head.id}</th>
          <th scope="col" className={css.wide}>
            {head.since}
          </th>
          <th scope="col" className={css.end}>
            {head.events}
          </th>
          <th scope="col" className={css.wide}>
            {head.request}
          </th>
        </tr>
      </thead>
      <tbody>
        {of.map((one) => (
          <tr key={one.id}>
            <td>{one.name || <span className="muted">{text.unnamed}</span>}</td>
            <td>{one.kind || <span className="muted">{text.unread}</span>}</td>
            <td className="mono">{one.id}</td>
            <td className={css.wide}>
              <Time at={one.since} />
            </td>
            <td className={css.end}>{number(one.events)}</td>
            <td className={css.wide}>{one.request_id && <ID value={one.request_id} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Asks how a connection is to be closed, and ends it. */
function End({ connection, onClose }: { connection: Connection; onClose: () => void }) {
  const [url, setURL] = useURLState();
  const [code, setCode] = useState('1000');
  const [reason, setReason] = useState('');
  const end = useWrite(
    () =>
      data(
        api.DELETE('/api/connections/{id}', {
          params: { path: { id: connection.id }, query: { code: Number(code) as 1000 | 1012 | 4403, close_reason: reason.trim() || undefined } },
        }),
      ),
    {
      changes: [['connections', 'list']],
      done: () => {
        toast({ kind: 'ok', text: text.ended });
        if (url.open === connection.id) setURL({ open: '' });
      },
    },
  );
  return (
    <Confirm title={text.endTitle} verb={text.end} onClose={onClose} onConfirm={() => end.mutateAsync(undefined)}>
      <p>{text.endText(nameOf(connection), connection.active_operations)}</p>
      <SelectField label={text.code} value={code} onChange={setCode} options={text.codes} />
      <TextField label={text.reason} help={text.reasonHelp} value={reason} onChange={setReason} />
    </Confirm>
  );
}
