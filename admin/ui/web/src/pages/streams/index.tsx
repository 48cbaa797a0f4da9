// The event streams of all gateways.
import { useState } from 'react';
import { api, data, useRead, type components } from '../../api';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { EmptyState } from '../../parts/EmptyState';
import { SelectField, TextField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { useURLState } from '../../parts/urlState';
import { cx } from '../../lib';
import { number, t } from '../../text/en';
import { phases, type Phase } from '../apis/streams/graph';
import { PhaseBadge } from '../apis/streams/Graph';
import { text as streams } from '../apis/streams/text';
import css from '../connections/connections.module.css';
import { text } from './text';

export const pages = { '/streams': Streams };

type Row = components['schemas']['StreamRow'];

/** How often what runs is read again, in milliseconds. */
const every = 5_000;

function Streams() {
  const [url, setURL] = useURLState();
  const phase = phases.find((one) => one === url.phase);
  const query = useRead(
    ['streams', url.api, phase, url.after],
    (signal) => data(api.GET('/api/streams', { params: { query: { api_id: url.api, phase, after: url.after, page_size: 50 } }, signal })),
    { every, keep: true },
  );
  const narrowed = !!(url.api || phase);
  const clear = () => setURL({ api: '', phase: '', after: '' });
  return (
    <Page title={text.title} note={text.note}>
      <Filters key={`${url.api} ${phase}`} clear={narrowed ? clear : undefined} />
      <Loaded query={query} what={text.label}>
        {(list) => (
          <>
            {list.silent.length > 0 && (
              <p className={css.silent}>
                <Badge kind="warn">{text.silent(list.silent)}</Badge>
              </p>
            )}
            {list.streams.length > 0 ? (
              <Table rows={list.streams} />
            ) : narrowed || url.after ? (
              <EmptyState title={text.noMatch} text="" action={<Button onClick={clear}>{text.clear}</Button>} />
            ) : (
              <EmptyState
                title={text.none}
                text={text.noneText}
                action={
                  <Needs role="editor">
                    <LinkButton kind="primary" to="/apis/new" search={{ from: 'streams' }}>
                      {text.create}
                    </LinkButton>
                  </Needs>
                }
              />
            )}
            <div className="row">
              {url.after && <Button onClick={() => setURL({ after: '' }, { push: true })}>{text.first}</Button>}
              {list.next && <Button onClick={() => setURL({ after: list.next }, { push: true })}>{text.more}</Button>}
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Filters({ clear }: { clear?: () => void }) {
  const [url, setURL] = useURLState();
  const [id, setID] = useState(url.api ?? '');
  return (
    <form
      role="search"
      className={css.filters}
      onSubmit={(event) => {
        event.preventDefault();
        setURL({ api: id.trim(), after: '' });
      }}
    >
      <TextField label={text.filterAPI} value={id} onChange={setID} type="search" />
      <SelectField
        label={text.filterPhase}
        value={url.phase ?? ''}
        onChange={(phase) => setURL({ phase, after: '' })}
        options={[{ value: '', label: text.anyPhase }, ...phases.map((one) => ({ value: one, label: streams.phases[one]! }))]}
      />
      <Button type="submit">{text.apply}</Button>
      {clear && <Button onClick={clear}>{text.clear}</Button>}
    </form>
  );
}

function Table({ rows }: { rows: Row[] }) {
  const head = text.columns;
  return (
    <div className={css.scroll} tabIndex={0} role="region" aria-label={text.label}>
      <table className={css.table} aria-label={text.label}>
        <thead>
          <tr>
            <th scope="col">{head.stream}</th>
            <th scope="col">{head.api}</th>
            <th scope="col">{head.phase}</th>
            <th scope="col" className={css.end}>
              {head.messages}
            </th>
            <th scope="col" className={cx(css.wide, css.end)}>
              {head.flight}
            </th>
            <th scope="col" className={css.wide}>
              {head.error}
            </th>
            <th scope="col" className={css.wide}>
              {head.gateways}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.api_id} ${row.stream}`}>
              <td>
                <Link to={`/apis/${encodeURIComponent(row.api_id)}/streams`} search={{ stream: row.stream }}>
                  {row.stream}
                </Link>
              </td>
              <td>{row.api_name ? <Link to={`/apis/${encodeURIComponent(row.api_id)}`}>{row.api_name}</Link> : <span className="muted">{text.deleted}</span>}</td>
              <td>
                <PhaseBadge phase={row.phase as Phase} />
              </td>
              <td className={css.end}>{text.messages(row.messages_in, row.messages_out)}</td>
              <td className={cx(css.wide, css.end)}>{number(row.in_flight)}</td>
              <td className={css.wide}>
                {row.last_error ? (
                  <>
                    {row.last_error} <Time at={row.last_error_at} />
                  </>
                ) : (
                  <span className="muted">{t.nothing}</span>
                )}
              </td>
              <td className={css.wide}>{row.gateways.map((one) => (one.phase === row.phase ? one.gateway || text.unnamed : `${one.gateway || text.unnamed} (${streams.phases[one.phase]})`)).join(', ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
