import { useState } from 'react';
import { Failure, queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { randomID } from '../../lib';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, TextField } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { PickerField } from '../../parts/Picker';
import { SecretSheet } from '../../parts/SecretSheet';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { t } from '../../text/en';
import { readList, searchPolicies, usePolicyNames, useSecretCall, wasLost, type Client, type Developer } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { text } from './text';

type Row = Client & { policy_id: string };
type Made = Client & { secret: string };

const pathOf = (developer: Developer, client = '') => `/api/portal/developers/${encodeURIComponent(developer.id)}/oauth-clients${client && `/${encodeURIComponent(client)}`}`;

/** OAuth clients of a developer. */
export function Clients({ developer }: { developer: Developer }) {
  const [url, setURL] = useURLState();
  const [made, setMade] = useState<Made>();
  const [removing, setRemoving] = useState<Row>();
  const may = useCan('approver');
  const renewing = useSecretCall();
  const again = () => void queryClient.invalidateQueries({ queryKey: ['developers', developer.id] });
  const query = useRead(['developers', developer.id, 'clients'], (signal) => readList<Row>(`developers/${encodeURIComponent(developer.id)}/oauth-clients`, {}, signal));
  const nameOf = usePolicyNames((query.data?.rows ?? []).map((row) => row.policy_id));
  return (
    <Card title={text.clients.title}>
      <Loaded query={query} what={text.clients.title} lines={2}>
        {({ rows }) =>
          rows.length === 0 ? (
            <p className="muted">{text.clients.none}</p>
          ) : (
            <ul className={portalCSS.lines}>
              {rows.map((row) => (
                <li key={row.client_id} className={portalCSS.line}>
                  <span>
                    <code>{row.client_id}</code> <span className="muted">{nameOf(row.policy_id)}</span> {row.app_description}{' '}
                    <span className="muted">
                      <Time at={row.date_created} as="day" />
                    </span>
                  </span>
                  {may && (
                    <span className="row">
                      <Button dense busy={renewing.busy} onClick={() => void renewing.run(() => request<Made>('POST', `${pathOf(developer, row.client_id)}/secret`), setMade)}>
                        {text.clients.secret}
                      </Button>
                      <Button dense kind="danger" onClick={() => setRemoving(row)}>
                        {text.clients.remove}
                      </Button>
                    </span>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {renewing.failure !== undefined && <ErrorPanel failure={renewing.failure} what={text.clients.secret} />}
      {url.new === 'client' && may && (
        <Create
          developer={developer}
          onClose={() => setURL({ new: '' })}
          done={(client) => {
            setURL({ new: '' });
            setMade(client);
            again();
          }}
        />
      )}
      {removing && (
        <Confirm
          title={text.clients.removeTitle(removing.client_id)}
          name={removing.client_id}
          verb={text.clients.removeVerb}
          onClose={() => setRemoving(undefined)}
          onConfirm={async () => {
            await request('DELETE', pathOf(developer, removing.client_id));
            toast({ kind: 'ok', text: text.clients.removed });
            again();
          }}
        >
          <p>{text.clients.removeHelp}</p>
        </Confirm>
      )}
      {made && (
        <SecretSheet title={text.clients.sheet} secret={`${made.client_id}\n${made.secret}`} file={`client-${developer.email}`} address={developer.email} onClose={() => setMade(undefined)}>
          <p>{text.clients.sheetLines}</p>
        </SecretSheet>
      )}
    </Card>
  );
}

function Create(p: { developer: Developer; done: (made: Made) => void; onClose: () => void }) {
  const [body, setBody] = useState({ policy_id: '', redirect_uri: '', app_description: '', use_case: '' });
  const [once] = useState(randomID);
  const call = useSecretCall();
  const put = (name: keyof typeof body) => (value: string) => setBody((now) => ({ ...now, [name]: value }));
  return (
    <Dialog
      title={text.clients.createTitle(p.developer.email)}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind="primary" busy={call.busy} disabled={!body.policy_id} onClick={() => void call.run(() => request<Made>('POST', pathOf(p.developer), { body, once }), p.done)}>
            {text.clients.createVerb}
          </Button>
        </>
      }
    >
      <FieldProblems problems={call.failure instanceof Failure ? call.failure.problems : []}>
        <PickerField label={text.clients.policy} path="policy_id" required queryKey={['policies', 'pick']} search={searchPolicies} value={body.policy_id} onChange={put('policy_id')} />
        <TextField label={text.clients.redirect} path="redirect_uri" type="url" value={body.redirect_uri} onChange={put('redirect_uri')} />
        <TextField label={text.clients.description} path="app_description" value={body.app_description} onChange={put('app_description')} />
        <TextField label={text.clients.useCase} path="use_case" value={body.use_case} onChange={put('use_case')} />
      </FieldProblems>
      {call.failure !== undefined && <ErrorPanel failure={call.failure} what={text.clients.createVerb} />}
      {wasLost(call.failure) && <p>{t.secret.lost}</p>}
    </Dialog>
  );
}
