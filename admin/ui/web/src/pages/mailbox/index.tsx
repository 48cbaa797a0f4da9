import { useState } from 'react';
import { queryClient, request } from '../../api';
import { Button } from '../../parts/Button';
import { Card, Facts } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { Copy } from '../../parts/Copy';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { Link } from '../../parts/Link';
import { List, type Column } from '../../parts/ListPage';
import { Page } from '../../parts/Page';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { one, readList, useSecretCall } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { Split } from '../portal/Split';
import { text } from './text';

export const pages = { '/mailbox': Mailbox };

interface Head {
  id: string;
  kind: string;
  to: string;
  developer_id: string;
  created_at: string;
}

interface Letter extends Head {
  from: string;
  subject: string;
  text: string;
}

const columns: Column<Head>[] = [
  { id: 'to', label: text.columns.to, cell: (row) => row.to },
  { id: 'kind', label: text.columns.kind, cell: (row) => text.kinds[row.kind] ?? row.kind },
  { id: 'created', label: text.columns.created, cell: (row) => <Time at={row.created_at} />, end: true },
];

function Mailbox() {
  const [url, setURL] = useURLState();
  return (
    <Page title={text.title} note={text.note}>
      <Split
        label={text.what}
        back={text.back}
        open={Boolean(url.open)}
        onClose={() => setURL({ open: '' })}
        list={
          <List<Head>
            label={text.label}
            things={text.things}
            queryKey={['mailbox']}
            load={(query, signal) => readList<Head>('mailbox', { q: query.q, p: query.page }, signal)}
            columns={columns}
            rowKey={(row) => row.id}
            rowName={(row) => `${text.kinds[row.kind] ?? row.kind}, ${row.to}`}
            rowOpens={(row) => ({ open: row.id })}
            openKey={url.open ?? ''}
            search={text.search}
            empty={text.empty}
          />
        }
        panel={<Shown key={url.open} id={url.open ?? ''} onClose={() => setURL({ open: '' })} />}
      />
    </Page>
  );
}

/** A letter is read on demand: that is noted in the audit log, and it may hold a credential. */
function Shown({ id, onClose }: { id: string; onClose: () => void }) {
  const [letter, setLetter] = useState<Letter>();
  const [removing, setRemoving] = useState(false);
  const reading = useSecretCall();
  const links = letter?.text.match(/https?:\/\/\S+/g) ?? [];
  return (
    <>
      {!letter && (
        <>
          <p className="muted">{text.noted}</p>
          <div>
            <Button kind="primary" busy={reading.busy} onClick={() => void reading.run(() => request<Letter>('GET', one('mailbox', id)), setLetter)}>
              {text.reveal}
            </Button>
          </div>
        </>
      )}
      {reading.failure !== undefined && <ErrorPanel failure={reading.failure} what={text.reveal} />}
      {letter && (
        <>
          <h2>{letter.subject}</h2>
          <Facts
            of={[
              [text.facts.to, letter.developer_id ? <Link key="to" to={`/developers/${encodeURIComponent(letter.developer_id)}`}>{letter.to}</Link> : letter.to],
              ...(letter.from ? [[text.facts.from, letter.from] as [string, string]] : []),
              [text.facts.written, <Time key="written" at={letter.created_at} as="full" />],
            ]}
          />
          {links.length > 0 && (
            <Card title={text.links}>
              <ul className={portalCSS.lines}>
                {links.map((link) => (
                  <li key={link} className={portalCSS.line}>
                    <code>{link}</code> <Copy text={link} label={text.link} visible />
                  </li>
                ))}
              </ul>
            </Card>
          )}
          <Card title={text.letter} actions={<Copy text={letter.text} label={text.copyText} visible />}>
            <pre className={portalCSS.letter} tabIndex={0}>
              {letter.text}
            </pre>
          </Card>
        </>
      )}
      <div>
        <Button dense kind="danger" onClick={() => setRemoving(true)}>
          {text.remove}
        </Button>
      </div>
      {removing && (
        <Confirm
          title={text.removeTitle}
          verb={text.removeVerb}
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await request('DELETE', one('mailbox', id));
            toast({ kind: 'ok', text: text.removed });
            void queryClient.invalidateQueries({ queryKey: ['mailbox'] });
            onClose();
          }}
        />
      )}
    </>
  );
}
