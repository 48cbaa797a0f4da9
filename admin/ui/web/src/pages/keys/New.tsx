import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { addressOf, useGatewayURL } from '../../app/gateway';
import { Failure, queryClient } from '../../api';
import { randomID } from '../../lib';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, TextField, TextsField } from '../../parts/fields';
import { PickerListField } from '../../parts/Picker';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { SecretSheet } from '../../parts/SecretSheet';
import { useURLState } from '../../parts/urlState';
import { findAPIs, makeKey, type APIRow } from './data';
import { PolicyPicker } from './PolicyPicker';
import { text } from './text';

export function NewKey() {
  return (
    <Page title={text.newTitle}>
      <Needs role="editor" say>
        <Form />
      </Needs>
    </Page>
  );
}

function Form() {
  const navigate = useNavigate();
  const [url] = useURLState();
  const [alias, setAlias] = useState('');
  const [policies, setPolicies] = useState<string[]>(url.policy ? [url.policy] : []);
  const [apis, setAPIs] = useState<string[]>(url.api ? [url.api] : []);
  const [expires, setExpires] = useState('');
  const [tags, setTags] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [made, setMade] = useState<{ key: string; hash: string; first?: APIRow }>();
  // The same call sent twice makes one key: a new name is taken when the form changes.
  const once = useRef({ id: '', of: '' });

  const nothing = policies.length === 0 && apis.length === 0;
  const gateway = useGatewayURL();

  const make = async () => {
    if (busy) return;
    setBusy(true);
    setFailure(undefined);
    const own = policies.length > 0 ? [] : apis;
    try {
      const rows = (await Promise.all(own.map((id) => findAPIs(id)))).flatMap((found, at) => found.filter((row) => row.api_id === own[at]));
      const session = {
        alias: alias.trim() || undefined,
        apply_policies: policies.length > 0 ? policies : undefined,
        access_rights: own.length > 0 ? Object.fromEntries(own.map((id) => [id, { api_id: id, api_name: rows.find((row) => row.api_id === id)?.name }])) : undefined,
        expires: expires ? Math.floor(Date.parse(`${expires}T23:59:59Z`) / 1000) : undefined,
        tags: tags.filter(Boolean).length > 0 ? tags.filter(Boolean) : undefined,
      };
      const of = JSON.stringify(session);
      if (once.current.of !== of) once.current = { id: randomID(), of };
      const answer = await makeKey(session, once.current.id);
      once.current = { id: '', of: '' };
      void queryClient.invalidateQueries({ queryKey: ['keys'] });
      if (answer.key) setMade({ key: answer.key, hash: answer.key_hash, first: rows[0] });
      else setFailure(new Error(text.lost));
    } catch (cause) {
      setFailure(cause);
    }
    setBusy(false);
  };
  return (
    <Card title={text.key}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <FieldProblems problems={failure instanceof Failure ? failure.problems : []}>
          <TextField label={text.alias} help={text.aliasHelp} path="alias" value={alias} onChange={setAlias} maxLength={1024} autoComplete="off" />
          <PolicyPicker chosen={policies} onChange={setPolicies} />
          <PickerListField
            label={text.apis}
            help={policies.length > 0 ? text.apisNot : text.apisHelp}
            path="access_rights"
            queryKey={['apis', 'pick']}
            search={async (q, signal) => (await findAPIs(q, signal)).map((row) => ({ value: row.api_id, label: row.name || row.api_id, note: row.domain + row.listen_path }))}
            value={policies.length > 0 ? [] : apis}
            onChange={setAPIs}
            disabled={policies.length > 0}
          />
          {nothing && <p className="muted">{text.needPolicy}</p>}
          <TextField label={text.expires} help={text.expiresHelp} path="expires" value={expires} onChange={setExpires} placeholder="2027-01-31" />
          <TextsField label={text.labels} help={text.labelsHelp} path="tags" value={tags} onChange={setTags} />
        </FieldProblems>
        {failure !== undefined && <ErrorPanel failure={failure} />}
        <Button kind="primary" type="submit" busy={busy} disabled={nothing || (expires !== '' && Number.isNaN(Date.parse(expires)))}>
          {text.make}
        </Button>
      </form>
      {made && (
        <SecretSheet
          title={text.newKey(alias.trim() || made.hash.slice(0, 12))}
          secret={made.key}
          file={`key-${alias.trim().replace(/[^\w.-]+/g, '-') || made.hash.slice(0, 12)}`}
          onClose={() => {
            const { hash } = made;
            setMade(undefined);
            void navigate({ to: `/keys/${hash}` as never });
          }}
        >
          {made.first && gateway && (
            <>
              <p>{text.tryIt}</p>
              <pre className="mono" tabIndex={0} aria-label={text.tryIt}>{callOf(addressOf(gateway, made.first.domain, made.first.listen_path), made.first.kind)}</pre>
            </>
          )}
        </SecretSheet>
      )}
    </Card>
  );
}

/** A call as curl makes it. The key is to be put in by hand: it is shown above, this once. */
function callOf(address: string, kind: string): string {
  const query = kind === 'graphql' ? ` -H 'Content-Type: application/json' -d '{"query":"{ __typename }"}'` : '';
  return `curl ${address} -H "Authorization: $KEY"${query}`;
}
