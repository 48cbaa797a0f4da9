// What happens when developers ask for keys: settings of the portal, and of an entry that
// has its own.
import type { Draft } from '../../parts/draft';
import { NumberField, SwitchField, TextField, TextsField } from '../../parts/fields';

const text = {
  approval: 'Requests wait for an approver',
  approvalHelp: 'Off: the developer gets the credential at once.',
  fields: 'Fields of a key request',
  fieldsHelp: 'What developers have to fill in, such as “use case”. Other fields are refused.',
  multi: 'One request may ask for several policies',
  redirect: 'Requests are made on another site',
  redirectHelp: 'No request is created; browsers are led to the address below.',
  redirectTo: 'Address of that site',
  redirectToHelp: 'A path of the portal’s own site, or a URL whose host is in the list below.',
  redirectHosts: 'Hosts that may be led to',
  redirectHostsHelp: 'Such as example.com or example.com:8443.',
  clients: 'OAuth clients of one developer',
  clientsHelp: '-1: no limit.',
};

export function RequestSettings({ draft, at, disabled }: { draft: Draft; at: string; disabled?: boolean }) {
  const path = (name: string) => (at ? `${at}.${name}` : name);
  const get = <T,>(name: string, initial: T): T => draft.get<T>(path(name)) ?? initial;
  const set = (name: string) => (value: unknown) => draft.set(path(name), value);
  return (
    <>
      <SwitchField label={text.approval} help={text.approvalHelp} path={path('require_key_approval')} disabled={disabled} value={get('require_key_approval', true)} onChange={set('require_key_approval')} />
      <TextsField label={text.fields} help={text.fieldsHelp} path={path('key_request_fields')} disabled={disabled} value={get<string[]>('key_request_fields', [])} onChange={set('key_request_fields')} />
      <SwitchField label={text.multi} path={path('enable_multi_selection')} disabled={disabled} value={get('enable_multi_selection', false)} onChange={set('enable_multi_selection')} />
      <NumberField label={text.clients} help={text.clientsHelp} path={path('oauth_usage_limit')} disabled={disabled} min={-1} value={get('oauth_usage_limit', -1)} onChange={(value) => set('oauth_usage_limit')(value ?? -1)} />
      <SwitchField label={text.redirect} help={text.redirectHelp} path={path('redirect_on_key_request')} disabled={disabled} value={get('redirect_on_key_request', false)} onChange={set('redirect_on_key_request')} />
      <TextField label={text.redirectTo} help={text.redirectToHelp} path={path('redirect_to')} disabled={disabled} value={get('redirect_to', '')} onChange={set('redirect_to')} />
      <TextsField label={text.redirectHosts} help={text.redirectHostsHelp} path={path('redirect_hosts')} disabled={disabled} code value={get<string[]>('redirect_hosts', [])} onChange={set('redirect_hosts')} />
    </>
  );
}
