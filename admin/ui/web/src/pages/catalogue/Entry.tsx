import { useNavigate, useParams } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { base as root } from '../../lib';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { Confirm } from '../../parts/Confirm';
import { DraftOffer, SaveBar, useDraft, useSave, type Base, type Draft } from '../../parts/draft';
import { FieldProblems, SelectField, SwitchField, TextAreaField, TextField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Needs } from '../../parts/Needs';
import { Opened } from '../../parts/Opened';
import { Page } from '../../parts/Page';
import { PickerField } from '../../parts/Picker';
import { toast } from '../../parts/toasts';
import { FieldsField } from '../portal/FieldsField';
import { MarkdownField } from '../portal/MarkdownField';
import { one, portal, readBase, replace, searchAPIs, searchDocuments, searchPolicies, type Done } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { RequestSettings } from '../portal/RequestSettings';
import { text } from './text';

const fresh = { name: '', short_description: '', long_description: '', show: false, api_id: '', policy_id: '', documentation: '', version: '', is_keyless: false, auth_type: 'authToken', fields: {} };

/** A new entry of the catalogue. */
export function NewEntry() {
  return <Editing base={{ text: JSON.stringify(fresh, null, 2), etag: '' }} />;
}

/** One entry of the catalogue. */
export function EntryPage() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const query = useRead(['catalogue', 'one', id], (signal) => readBase(one('catalogue/entries', id), signal), { keep: true });
  return (
    <Opened query={query} title={text.what}>
      {(base) => <Editing key={id} id={id} base={base} />}
    </Opened>
  );
}

function Editing({ id, base }: { id?: string; base: Base }) {
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const made = useRef(id ?? '');
  const may = useCan('editor');
  const draft = useDraft({ id: `entry:${id ?? 'new'}`, base });
  const saving = useSave({
    draft,
    send: async (it) => {
      if (id) return replace(one('catalogue/entries', id))(it);
      const { Message } = await request<Done>('POST', `${portal}/catalogue/entries`, { body: it.text, once: true });
      made.current = Message;
    },
    reload: () => readBase(one('catalogue/entries', made.current)),
    done: () => {
      void queryClient.invalidateQueries({ queryKey: ['catalogue'] });
      if (!id) void navigate({ to: `/catalogue/${encodeURIComponent(made.current)}`, replace: true });
    },
  });
  const name = draft.get<string>('name') ?? '';
  return (
    <Page
      title={name || text.untitled}
      note={
        <span className="row">
          {draft.get('is_keyless') ? <Badge kind="info">{text.keyless}</Badge> : null}
          {id && draft.get('show') ? (
            <a href={`${root}portal/apis/${encodeURIComponent(id)}`} target="_blank" rel="noreferrer">
              {text.portal}
            </a>
          ) : null}
        </span>
      }
      actions={
        id && (
          <Needs role="editor" say>
            <Button kind="danger" onClick={() => setRemoving(true)}>
              {text.remove}
            </Button>
          </Needs>
        )
      }
    >
      <FieldProblems problems={saving.problems}>
        <DraftOffer draft={draft} />
        <Offer draft={draft} disabled={!may} />
        <Card title={text.groups.text}>
          <TextAreaField label={text.short} help={text.shortHelp} path="short_description" rows={2} disabled={!may} value={draft.get<string>('short_description') ?? ''} onChange={(value) => draft.set('short_description', value)} />
          <MarkdownField
            label={text.long}
            path="long_description"
            disabled={!may}
            preview={text.preview}
            empty={text.previewEmpty}
            value={draft.get<string>('long_description') ?? ''}
            onChange={(value) => draft.set('long_description', value)}
          />
        </Card>
        <Card title={text.groups.more}>
          <FieldsField label={text.fields} path="fields" disabled={!may} value={draft.get<Record<string, string>>('fields') ?? {}} onChange={(value) => draft.set('fields', value)} />
        </Card>
        <Card title={text.groups.own}>
          <SwitchField
            label={text.override}
            help={text.overrideHelp}
            path="config.override"
            disabled={!may}
            value={draft.get<boolean>('config.override') ?? false}
            onChange={(value) => draft.set(draft.get('config') ? 'config.override' : 'config', draft.get('config') ? value : { override: value, require_key_approval: true, oauth_usage_limit: -1 })}
          />
          {draft.get<boolean>('config.override') && <RequestSettings draft={draft} at="config" disabled={!may} />}
        </Card>
        <SaveBar draft={draft} saving={saving} verb={id ? undefined : text.createVerb} />
      </FieldProblems>
      {removing && id && (
        <Confirm
          title={text.removeTitle(name)}
          verb={text.removeVerb}
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await request('DELETE', one('catalogue/entries', id), { headers: { 'If-Match': draft.base.etag } });
            toast({ kind: 'ok', text: text.removed(name) });
            await navigate({ to: '/catalogue' });
            void queryClient.invalidateQueries({ queryKey: ['catalogue', 'list'] });
          }}
        >
          <p>{text.removeHelp}</p>
        </Confirm>
      )}
    </Page>
  );
}

function Offer({ draft, disabled }: { draft: Draft; disabled: boolean }) {
  const get = <T,>(name: string, initial: T): T => draft.get<T>(name) ?? initial;
  const set = (name: string) => (value: unknown) => draft.set(name, value);
  return (
    <Card title={text.groups.offer}>
      <div className={portalCSS.columns}>
        <TextField label={text.name} path="name" required disabled={disabled} value={get('name', '')} onChange={set('name')} />
        <TextField label={text.version} help={text.versionHelp} path="version" disabled={disabled} value={get('version', '')} onChange={set('version')} />
        <PickerField label={text.api} help={text.apiHelp} path="api_id" disabled={disabled} queryKey={['apis', 'pick']} search={searchAPIs} value={get('api_id', '')} onChange={set('api_id')} />
        <PickerField label={text.policy} help={text.policyHelp} path="policy_id" disabled={disabled} queryKey={['policies', 'pick']} search={searchPolicies} value={get('policy_id', '')} onChange={set('policy_id')} />
        <SelectField
          label={text.authType}
          path="auth_type"
          disabled={disabled}
          value={get('auth_type', '') || 'authToken'}
          onChange={set('auth_type')}
          options={['authToken', 'basic', 'oauth'].map((value) => ({ value, label: text.authTypes[value]! }))}
        />
        <PickerField
          label={text.document}
          help={
            <>
              {text.documentHelp} <Link to="/documents/new">{text.newDocument}</Link>
            </>
          }
          path="documentation"
          disabled={disabled}
          queryKey={['documents', 'pick']}
          search={searchDocuments}
          value={get('documentation', '')}
          onChange={set('documentation')}
        />
        <SwitchField label={text.visible} path="show" disabled={disabled} value={get('show', false)} onChange={set('show')} />
        <SwitchField label={text.isKeyless} help={text.isKeylessHelp} path="is_keyless" disabled={disabled} value={get('is_keyless', false)} onChange={set('is_keyless')} />
      </div>
    </Card>
  );
}
