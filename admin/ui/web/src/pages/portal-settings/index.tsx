import { queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { Card } from '../../parts/Card';
import { DraftOffer, SaveBar, useDraft, useSave, type Base, type Draft } from '../../parts/draft';
import { FieldGroup, FieldProblems, SwitchField, TextAreaField, TextField, TextsField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { portal, readBase, type Done, type EventName, type LetterName } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { RequestSettings } from '../portal/RequestSettings';
import { Brand } from './Brand';
import { Content } from './Content';
import { text } from './text';

export const pages = { '/portal-settings': PortalSettings };

const path = `${portal}/configuration`;

/** Placeholders that each letter fills in. */
const placeholders: Record<LetterName, string[]> = {
  welcome_email: ['email', 'portal'],
  key_email: ['email', 'portal', 'key', 'password', 'policies'],
  reset_password_email: ['email', 'portal', 'link'],
};

function PortalSettings() {
  const query = useRead(['portal', 'configuration', 'base'], (signal) => readBase(path, signal), { keep: true });
  return (
    <Page title={text.title} note={query.data && !query.data.etag ? text.fresh : undefined}>
      <Loaded query={query} what={text.what} lines={10}>
        {(base) => <Form base={base} />}
      </Loaded>
      <Brand />
      <Content />
    </Page>
  );
}

function Form({ base }: { base: Base }) {
  const disabled = !useCan('editor');
  const draft = useDraft({ id: 'portal-settings', base });
  const saving = useSave({
    draft,
    // Without a version there is none yet.
    send: ({ text: body, etag }) => request<Done>(etag ? 'PUT' : 'POST', path, { body, headers: etag ? { 'If-Match': etag } : undefined }),
    reload: () => readBase(path),
    done: () => void queryClient.invalidateQueries({ queryKey: ['portal'] }),
  });
  return (
    <FieldProblems problems={saving.problems}>
      <Needs role="editor" say>
        {null}
      </Needs>
      <DraftOffer draft={draft} />
      <Access draft={draft} disabled={disabled} />
      <Card title={text.groups.requests}>
        <div className={portalCSS.columns}>
          <RequestSettings draft={draft} at="" disabled={disabled} />
        </div>
      </Card>
      <Letters draft={draft} disabled={disabled} />
      <Events draft={draft} disabled={disabled} />
      <Card title={text.groups.keys}>
        <p>{draft.get<boolean>('HashKeys') === false ? text.clear : text.hashed}</p>
        <p className="muted">{text.hashedHelp}</p>
      </Card>
      <SaveBar draft={draft} saving={saving} />
    </FieldProblems>
  );
}

interface Part {
  draft: Draft;
  disabled: boolean;
}

function Access({ draft, disabled }: Part) {
  const flag = (name: string, label: string, help?: string) => <SwitchField label={label} help={help} path={name} disabled={disabled} value={draft.get<boolean>(name) ?? false} onChange={(value) => draft.set(name, value)} />;
  return (
    <Card title={text.groups.access}>
      <div className={portalCSS.columns}>
        {flag('disable_signup', text.disableSignup, text.disableSignupHelp)}
        {flag('disable_login', text.disableLogin)}
        {flag('disable_verification', text.disableVerification, text.disableVerificationHelp)}
        {flag('disable_auto_login', text.disableAutoLogin)}
        {flag('catalogue_login_only', text.loginOnly)}
      </div>
      <TextsField label={text.signupFields} help={text.signupFieldsHelp} path="signup_fields" disabled={disabled} value={draft.get<string[]>('signup_fields') ?? []} onChange={(value) => draft.set('signup_fields', value)} />
      <TextField label={text.email} path="email" type="email" disabled={disabled} value={draft.get<string>('email') ?? ''} onChange={(value) => draft.set('email', value)} />
    </Card>
  );
}

function Letters({ draft, disabled }: Part) {
  const set = (name: string) => (value: unknown) => draft.set(name, value);
  return (
    <Card title={text.groups.letters}>
      <div className={portalCSS.columns}>
        <TextField label={text.fromName} path="mail_options.mail_from_name" disabled={disabled} value={draft.get<string>('mail_options.mail_from_name') ?? ''} onChange={set('mail_options.mail_from_name')} />
        <TextField
          label={text.fromEmail}
          help={text.fromHelp}
          path="mail_options.mail_from_email"
          type="email"
          disabled={disabled}
          value={draft.get<string>('mail_options.mail_from_email') ?? ''}
          onChange={set('mail_options.mail_from_email')}
        />
      </div>
      <div className={portalCSS.columns}>
        {(Object.keys(text.letters) as LetterName[]).map((name) => {
          const at = `mail_options.email_copy.${name}`;
          const get = <T,>(member: string, initial: T): T => draft.get<T>(`${at}.${member}`) ?? initial;
          const names = placeholders[name].map((one) => `{{${one}}}`).join(', ');
          return (
            <FieldGroup key={name} title={text.letters[name]}>
              <SwitchField label={text.enabled} path={`${at}.enabled`} disabled={disabled} value={get('enabled', false)} onChange={set(`${at}.enabled`)} />
              <TextField label={text.subject} path={`${at}.subject`} disabled={disabled} value={get('subject', '')} onChange={set(`${at}.subject`)} />
              <TextAreaField label={text.body} help={text.bodyHelp(names)} path={`${at}.body`} rows={9} disabled={disabled} value={get('body', '')} onChange={set(`${at}.body`)} />
              <TextAreaField label={text.signOff} path={`${at}.sign_off`} rows={2} disabled={disabled} value={get('sign_off', '')} onChange={set(`${at}.sign_off`)} />
              {name === 'key_email' && <SwitchField label={text.hide} help={text.hideHelp} path={`${at}.hide_token_data`} disabled={disabled} value={get('hide_token_data', false)} onChange={set(`${at}.hide_token_data`)} />}
            </FieldGroup>
          );
        })}
      </div>
    </Card>
  );
}

function Events({ draft, disabled }: Part) {
  return (
    <Card title={text.groups.events} actions={<Link to="/webhooks">Webhooks</Link>}>
      <p className="muted">{text.webhookHelp}</p>
      <div className={portalCSS.columns}>
        {(Object.keys(text.events) as EventName[]).map((name) => (
          <FieldGroup key={name} title={text.events[name]}>
            <TextField
              label={text.webhook}
              path={`event_options.${name}.webhook`}
              inputMode="url"
              disabled={disabled}
              value={draft.get<string>(`event_options.${name}.webhook`) ?? ''}
              onChange={(value) => draft.set(`event_options.${name}.webhook`, value)}
            />
            <TextField
              label={text.eventEmail}
              path={`event_options.${name}.email`}
              type="email"
              disabled={disabled}
              value={draft.get<string>(`event_options.${name}.email`) ?? ''}
              onChange={(value) => draft.set(`event_options.${name}.email`, value)}
            />
          </FieldGroup>
        ))}
      </div>
    </Card>
  );
}
