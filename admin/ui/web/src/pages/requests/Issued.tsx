import { useRead, request } from '../../api';
import { SecretSheet } from '../../parts/SecretSheet';
import { linesOf, portal, type Configuration, type Credential, type KeyRequest } from '../portal/model';
import { text } from './text';

/** The credential that an approval came to, this once. */
export function Issued(p: { request: KeyRequest; who: string; credential: Credential; onClose: () => void }) {
  const kind = p.request.catalogue_entry?.auth_type ?? '';
  const title = kind === 'basic' ? text.sheet.user : kind === 'oauth' ? text.sheet.client : text.sheet.key;
  return (
    <SecretSheet title={title(p.who)} secret={linesOf(p.credential)} file={`key-${p.who}`} address={p.who} onClose={p.onClose}>
      {p.credential.Password && text.sheet.lines[kind] && <p>{text.sheet.lines[kind]}</p>}
      <InLetter />
    </SecretSheet>
  );
}

/** Whether the letter to the developer has the credential. */
export function InLetter() {
  const { data } = useRead(['portal', 'configuration'], (signal) => request<Configuration>('GET', `${portal}/configuration`, { signal }));
  if (!data) return null;
  const letter = data.mail_options.email_copy.key_email;
  return <p className="muted">{letter.enabled && !letter.hide_token_data ? text.sheet.letter : text.sheet.noLetter}</p>;
}
