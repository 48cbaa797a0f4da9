import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { Failure, queryClient } from '../../api';
import { randomID } from '../../lib';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, TextField, TextsField } from '../../parts/fields';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { SecretSheet } from '../../parts/SecretSheet';
import { useURLState } from '../../parts/urlState';
import { makeKey } from './data';
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
  const [expires, setExpires] = useState('');
  const [tags, setTags] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const [made, setMade] = useState<{ key: string; hash: string }>();
  // The same call sent twice makes one key: a new name is taken when the form changes.
  const once = useRef({ id: '', of: '' });

  const make = async () => {
    if (busy) return;
    const session = {
      alias: alias.trim() || undefined,
      apply_policies: policies,
      expires: expires ? Math.floor(Date.parse(`${expires}T23:59:59Z`) / 1000) : undefined,
      tags: tags.filter(Boolean).length > 0 ? tags.filter(Boolean) : undefined,
    };
    const of = JSON.stringify(session);
    if (once.current.of !== of) once.current = { id: randomID(), of };
    setBusy(true);
    setFailure(undefined);
    try {
      const answer = await makeKey(session, once.current.id);
      once.current = { id: '', of: '' };
      void queryClient.invalidateQueries({ queryKey: ['keys'] });
      if (answer.key) setMade({ key: answer.key, hash: answer.key_hash });
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
          {policies.length === 0 && <p className="muted">{text.needPolicy}</p>}
          <TextField label={text.expires} help={text.expiresHelp} path="expires" value={expires} onChange={setExpires} placeholder="2027-01-31" />
          <TextsField label={text.labels} help={text.labelsHelp} path="tags" value={tags} onChange={setTags} />
        </FieldProblems>
        {failure !== undefined && <ErrorPanel failure={failure} />}
        <Button kind="primary" type="submit" busy={busy} disabled={policies.length === 0 || (expires !== '' && Number.isNaN(Date.parse(expires)))}>
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
        />
      )}
    </Card>
  );
}
