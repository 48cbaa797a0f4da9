import { useState } from 'react';
import { request } from '../../api';
import { useCan } from '../../app/session';
import { Badge } from '../../parts/Badge';
import { ListPage, type Column } from '../../parts/ListPage';
import { Time } from '../../parts/Time';
import { readGateways, type Gateway } from '../changes/model';
import css from './gateways.module.css';
import { text } from './text';

export const pages = { '/gateways': Gateways };

const silentAfter = 120_000;

function StateOf({ gateway, revision }: { gateway: Gateway; revision: string }) {
  if (Date.now() - new Date(gateway.seen_at).getTime() > silentAfter) return <Badge kind="warn">{text.silent}</Badge>;
  if (gateway.error) {
    return (
      <div className={css.state}>
        <Badge kind="danger">{text.failed}</Badge>
        <span className={css.error}>{gateway.error}</span>
      </div>
    );
  }
  return gateway.revision === revision ? <Badge kind="ok">{text.ok}</Badge> : <Badge kind="warn">{text.behind}</Badge>;
}

function Gateways() {
  const [rows, setRows] = useState<Gateway[]>([]);
  const [revision, setRevision] = useState('');
  const may = useCan('admin');
  const columns: Column<Gateway>[] = [
    { id: 'name', label: text.columns.name, cell: (row) => row.name },
    { id: 'state', label: text.columns.state, cell: (row) => <StateOf gateway={row} revision={revision} /> },
    { id: 'revision', label: text.columns.revision, cell: (row) => row.revision || '0', end: true },
    { id: 'group', label: text.columns.group, cell: (row) => row.group, wide: true },
    { id: 'tags', label: text.columns.tags, cell: (row) => (row.tags ?? []).join(', '), wide: true },
    { id: 'version', label: text.columns.version, cell: (row) => row.version, wide: true },
    { id: 'from', label: text.from, cell: (row) => row.ip, wide: true },
    { id: 'seen', label: text.columns.seen, cell: (row) => <Time at={row.seen_at} />, end: true },
  ];
  return (
    <ListPage<Gateway>
      title={text.title}
      note={rows.length > 0 && text.note(rows.filter((row) => row.up_to_date).length, rows.length, revision)}
      label={text.label}
      queryKey={['gateways', 'list']}
      on={['revision', 'generation', 'gateways', 'up_to_date']}
      load={async (_, signal) => {
        const answer = await readGateways(signal);
        setRevision(answer.revision);
        return { rows: answer.gateways ?? [] };
      }}
      onRows={setRows}
      columns={columns}
      rowKey={(row) => row.name}
      rowName={(row) => row.name}
      bulk={may ? [{ label: text.forget, danger: true, run: (row) => request('DELETE', `/api/gateways/${encodeURIComponent(row.name)}`) }] : []}
      empty={text.empty}
    />
  );
}
