import { useRef, useState } from 'react';
import { queryClient } from '../../api';
import { LinkButton } from '../../parts/Button';
import { List, type BulkAction, type Column } from '../../parts/ListPage';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { useCan } from '../../app/session';
import { policiesOf, readList, usePolicyNames, type Credential, type KeyRequest } from '../portal/model';
import { Split } from '../portal/Split';
import { Bulk } from './Bulk';
import { Issued } from './Issued';
import { RequestPanel } from './RequestPanel';
import { StateBadge } from './StateBadge';
import { text } from './text';

export const pages = { '/requests': Requests };

/** A decision that shows something or leads on. */
export interface Decided {
  request: KeyRequest;
  who: string;
  credential?: Credential;
}

function Requests() {
  const [url, setURL] = useURLState();
  const [rows, setRows] = useState<KeyRequest[]>([]);
  const [issued, setIssued] = useState<Decided & { credential: Credential }>();
  const [bulk, setBulk] = useState<{ verb: 'approve' | 'decline'; rows: KeyRequest[] }>();
  const may = useCan('approver');
  const nameOf = usePolicyNames(rows.flatMap(policiesOf));
  const next = useRef<string>('');

  // The next request opens when this one is decided on.
  const advance = () => {
    if (next.current) setURL({ open: next.current });
    void queryClient.invalidateQueries({ queryKey: ['requests'] });
  };
  const onDecided = (decided: Decided, verb: 'approved' | 'declined') => {
    const at = rows.findIndex((row) => row.id === decided.request.id);
    const waiting = (row: KeyRequest) => row.state === 'pending' && row.id !== decided.request.id;
    next.current = (rows.slice(at + 1).find(waiting) ?? rows.slice(0, Math.max(0, at)).findLast(waiting))?.id ?? '';
    if (decided.credential?.RawKey) {
      setIssued({ ...decided, credential: decided.credential });
      return;
    }
    toast({ kind: 'ok', text: verb === 'declined' ? text.declined(decided.who) : text.changed(decided.who) });
    advance();
  };

  const columns: Column<KeyRequest>[] = [
    { id: 'who', label: text.columns.developer, cell: whoOf },
    { id: 'plan', label: text.columns.plan, cell: (row) => policiesOf(row).map(nameOf).join(', ') || text.facts.removes },
    // Where only those that wait are listed, all have the same state.
    ...(url.state ? [{ id: 'state', label: text.columns.state, cell: (row: KeyRequest) => <StateBadge state={row.state} /> }] : []),
    { id: 'asked', label: text.columns.asked, cell: (row) => <Time at={row.date_created} />, end: true },
  ];
  const actions: BulkAction<KeyRequest>[] = may
    ? [
        { label: text.verbs.approve, run: () => Promise.resolve(), open: (chosen) => setBulk({ verb: 'approve', rows: chosen }) },
        { label: text.verbs.decline, run: () => Promise.resolve(), open: (chosen) => setBulk({ verb: 'decline', rows: chosen }) },
      ]
    : [];
  return (
    <Page title={text.title}>
      <Split
        label={text.title}
        back={text.back}
        pick={rows.length > 0 ? text.pick : undefined}
        open={Boolean(url.open)}
        onClose={() => setURL({ open: '' })}
        list={
          <List<KeyRequest>
            label={text.label}
            things={text.things}
            queryKey={['requests', 'list']}
            on={['pending_requests']}
            load={(query, signal) => readList<KeyRequest>('requests', { q: query.q, p: query.page, state: query.filters.state }, signal)}
            columns={columns}
            rowKey={(row) => row.id}
            rowName={whoOf}
            rowOpens={(row) => ({ open: row.id })}
            openKey={url.open ?? ''}
            onRows={setRows}
            search={text.search}
            filters={[
              {
                name: 'state',
                label: text.filters.state,
                initial: 'pending',
                options: Object.entries(text.filters.states).map(([value, label]) => ({ value, label })),
              },
            ]}
            bulk={actions}
            empty={{ ...text.empty, action: <LinkButton to="/portal-settings">{text.empty.settings}</LinkButton> }}
          />
        }
        panel={<RequestPanel key={url.open} id={url.open ?? ''} onDecided={onDecided} onClose={() => setURL({ open: '' })} />}
      />
      {issued && (
        <Issued
          {...issued}
          onClose={() => {
            setIssued(undefined);
            toast({ kind: 'ok', text: text.approved(issued.who) });
            advance();
          }}
        />
      )}
      {bulk && (
        <Bulk
          {...bulk}
          nameOf={nameOf}
          onClose={() => {
            setBulk(undefined);
            void queryClient.invalidateQueries({ queryKey: ['requests'] });
          }}
        />
      )}
    </Page>
  );
}

export const whoOf = (row: KeyRequest): string => row.portal_developer?.email ?? text.gone;
