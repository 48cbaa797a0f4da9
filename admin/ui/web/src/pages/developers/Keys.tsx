import { useState } from 'react';
import { Failure, queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { randomID } from '../../lib';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { PickerListField } from '../../parts/Picker';
import { SecretSheet } from '../../parts/SecretSheet';
import { toast } from '../../parts/toasts';
import { useURLState } from '../../parts/urlState';
import { t } from '../../text/en';
import { KeysTable } from '../portal/KeysTable';
import { linesOf, readList, searchPolicies, useSecretCall, wasLost, type Credential, type Developer, type Done, type KeyView } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { text } from './text';

const pathOf = (developer: Developer, key = '') => `/api/portal/developers/${encodeURIComponent(developer.id)}/keys${key && `/${encodeURIComponent(key)}`}`;

/** The keys of a developer, with the verbs of approvers. */
export function Keys({ developer }: { developer: Developer }) {
  const [url, setURL] = useURLState();
  const [issued, setIssued] = useState<Credential>();
  const [open, setOpen] = useState<{ verb: 'change' | 'revoke'; key: KeyView }>();
  const may = useCan('approver');
  const again = () => void queryClient.invalidateQueries({ queryKey: ['developers', developer.id] });
  const query = useRead(['developers', developer.id, 'keys'], (signal) => readList<KeyView>(`developers/${encodeURIComponent(developer.id)}/keys`, {}, signal));
  const reset = (key: KeyView) =>
    request<Done>('POST', `${pathOf(developer, key.key_id)}/reset_quota`).then(
      () => (toast({ kind: 'ok', text: text.keys.resetDone }), again()),
      (cause: Error) => toast({ kind: 'danger', text: cause.message }),
    );
  const verbs = (key: KeyView) => (
    <div className={portalCSS.verbs} role="group" aria-label={text.keys.verbs(key.key_id.slice(-6))}>
      {key.auth_type !== 'oauth' && (
        <Button dense onClick={() => setOpen({ verb: 'change', key })}>
          {text.keys.change}
        </Button>
      )}
      <Button dense onClick={() => void reset(key)}>
        {text.keys.reset}
      </Button>
      <Button dense kind="danger" onClick={() => setOpen({ verb: 'revoke', key })}>
        {text.keys.revoke}
      </Button>
    </div>
  );
  return (
    <Card title={text.keys.title}>
      <Loaded query={query} what={text.keys.title} lines={2}>
        {({ rows, pages }) => (
          <>
            {rows.length === 0 ? <p className="muted">{text.keys.none}</p> : <KeysTable keys={rows} label={text.keys.title} verbs={may ? verbs : undefined} />}
            {pages > 1 && <p className="muted">{text.keys.more(pages)}</p>}
          </>
        )}
      </Loaded>
      {url.new === 'key' && may && (
        <PoliciesDialog
          title={text.keys.createTitle(developer.email)}
          verb={text.keys.createVerb}
          help={text.keys.policiesHelp}
          initial={[]}
          onClose={() => setURL({ new: '' })}
          send={(policies, once) => request<Credential>('POST', pathOf(developer), { body: { apply_policies: policies }, once })}
          done={(made) => {
            setURL({ new: '' });
            setIssued(made as Credential);
            again();
          }}
        />
      )}
      {open?.verb === 'change' && (
        <PoliciesDialog
          title={text.keys.changeTitle}
          verb={text.keys.changeVerb}
          help={text.keys.changeHelp}
          initial={open.key.policies.map((policy) => policy.id)}
          onClose={() => setOpen(undefined)}
          send={(policies) => request<Done>('PUT', pathOf(developer, open.key.key_id), { body: { apply_policies: policies } })}
          done={() => {
            setOpen(undefined);
            toast({ kind: 'ok', text: text.keys.changed });
            again();
          }}
        />
      )}
      {open?.verb === 'revoke' && (
        <Confirm
          title={text.keys.revokeTitle(open.key.key_id.slice(-6))}
          name={open.key.alias || open.key.key_id.slice(-6)}
          verb={text.keys.revokeVerb}
          onClose={() => setOpen(undefined)}
          onConfirm={async () => {
            await request('DELETE', pathOf(developer, open.key.key_id));
            toast({ kind: 'ok', text: text.keys.revoked });
            again();
          }}
        >
          <p>{text.keys.revokeHelp}</p>
        </Confirm>
      )}
      {issued && <SecretSheet title={text.keys.sheet(developer.email)} secret={linesOf(issued)} file={`key-${developer.email}`} address={developer.email} onClose={() => setIssued(undefined)} />}
    </Card>
  );
}

function PoliciesDialog(p: {
  title: string;
  verb: string;
  help: string;
  initial: string[];
  send: (policies: string[], once: string) => Promise<unknown>;
  done: (answer: unknown) => void;
  onClose: () => void;
}) {
  const [policies, setPolicies] = useState(p.initial);
  const [once] = useState(randomID);
  const call = useSecretCall();
  return (
    <Dialog
      title={p.title}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind="primary" busy={call.busy} disabled={policies.length === 0} onClick={() => void call.run(() => p.send(policies, once), p.done)}>
            {p.verb}
          </Button>
        </>
      }
    >
      <FieldProblems problems={call.failure instanceof Failure ? call.failure.problems : []}>
        <PickerListField label={text.keys.policies} help={p.help} path="apply_policies" queryKey={['policies', 'pick']} search={searchPolicies} value={policies} onChange={setPolicies} />
      </FieldProblems>
      {call.failure !== undefined && <ErrorPanel failure={call.failure} what={p.verb} />}
      {wasLost(call.failure) && <p>{t.secret.lost}</p>}
    </Dialog>
  );
}
