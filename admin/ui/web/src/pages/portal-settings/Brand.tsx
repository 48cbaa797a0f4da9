import { Plus, X } from 'lucide-react';
import { useState, type CSSProperties } from 'react';
import { queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { base as root } from '../../lib';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { SaveBar, useDraft, useSave, type Base, type Draft } from '../../parts/draft';
import { FieldGroup, FieldProblems, TextField, useProblemsAt } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { Markdown } from '../../parts/Markdown';
import { t } from '../../text/en';
import { MarkdownField } from '../portal/MarkdownField';
import { portal, readBase, type Done } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import css from './brand.module.css';
import { brand as text } from './text';

const path = `${portal}/brand`;
const light = '#0a5bd0';
const dark = '#79aefc';

interface LinkOf {
  text: string;
  url: string;
}

/** How the portal looks, with a preview of what is not saved yet. */
export function Brand() {
  const query = useRead(['portal', 'brand'], (signal) => readBase(path, signal), { keep: true });
  return (
    <Loaded query={query} what={text.title}>
      {(base) => <Form base={base} />}
    </Loaded>
  );
}

function Form({ base }: { base: Base }) {
  const disabled = !useCan('editor');
  const draft = useDraft({ id: 'portal-brand', base });
  const saving = useSave({
    draft,
    send: ({ text: body, etag }) => request<Done>('PUT', path, { body, headers: etag ? { 'If-Match': etag } : undefined }),
    reload: () => readBase(path),
    done: () => void queryClient.invalidateQueries({ queryKey: ['portal', 'brand'] }),
  });
  const get = (name: string) => draft.get<string>(name) ?? '';
  const set = (name: string) => (value: string) => draft.set(name, value);
  return (
    <FieldProblems problems={saving.problems}>
      <Card title={text.title}>
        <div className={portalCSS.columns}>
          <TextField label={text.name} path="name" disabled={disabled} maxLength={80} value={get('name')} onChange={set('name')} />
          <Logo draft={draft} disabled={disabled} />
          <Accent label={text.accent} path="accent" initial={light} disabled={disabled} value={get('accent')} onChange={set('accent')} />
          <Accent label={text.accentDark} path="accent_dark" initial={dark} disabled={disabled} value={get('accent_dark')} onChange={set('accent_dark')} />
        </div>
        <Preview draft={draft} />
        <MarkdownField label={text.welcome} path="welcome" rows={5} disabled={disabled} preview={text.preview} empty={text.none} value={get('welcome')} onChange={set('welcome')} />
        <MarkdownField label={text.footer} path="footer" rows={4} disabled={disabled} preview={text.preview} empty={text.none} value={get('footer')} onChange={set('footer')} />
        <Links draft={draft} disabled={disabled} />
      </Card>
      <SaveBar draft={draft} saving={saving} verb={text.save} />
    </FieldProblems>
  );
}

function Accent(p: { label: string; path: string; initial: string; disabled: boolean; value: string; onChange: (value: string) => void }) {
  return (
    <div className={css.accent}>
      <TextField label={p.label} help={text.accentHelp(p.initial)} path={p.path} code placeholder={p.initial} disabled={p.disabled} value={p.value} onChange={p.onChange} />
      <input type="color" aria-label={text.choose(p.label)} disabled={p.disabled} value={/^#[0-9a-f]{6}$/i.test(p.value) ? p.value : p.initial} onChange={(event) => p.onChange(event.target.value)} />
    </div>
  );
}

function Logo({ draft, disabled }: { draft: Draft; disabled: boolean }) {
  const problems = useProblemsAt('logo');
  const [failed, setFailed] = useState('');
  const sent = draft.get<string>('logo');
  const stored = draft.get<string>('logo_id');
  const open = (file: File | undefined) => {
    if (!file) return;
    if (file.size > 200 * 1024) {
      setFailed(text.tooLarge);
      return;
    }
    setFailed('');
    void file.arrayBuffer().then((bytes) => draft.set('logo', btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(''))));
  };
  return (
    <div className={css.logo}>
      <label htmlFor="brand-logo">{text.logo}</label>
      <div className="row">
        <LogoImage sent={sent} stored={stored} />
        <input id="brand-logo" type="file" accept="image/png,image/jpeg,image/webp" data-path="logo" disabled={disabled} onChange={(event) => open(event.target.files?.[0])} />
        {(sent || (sent === undefined && stored)) && !disabled && (
          <Button dense onClick={() => draft.set('logo', '')}>
            {t.form.remove(text.logo)}
          </Button>
        )}
      </div>
      <p className="muted">{text.logoHelp}</p>
      {[...problems.map((problem) => problem.message), failed].filter(Boolean).map((message) => (
        <p key={message} role="alert" className={portalCSS.problem}>
          {message}
        </p>
      ))}
    </div>
  );
}

function LogoImage({ sent, stored }: { sent?: string; stored?: string }) {
  if (sent === '' || (sent === undefined && !stored)) return null;
  const source = sent ? `data:image/${sent.startsWith('/9j/') ? 'jpeg' : 'png'};base64,${sent}` : `${root}api/portal/public/brand/logo?v=${stored}`;
  return <img className={css.image} src={source} alt="" />;
}

/** The head of the portal and a button, on both surfaces, with the accents of the draft. */
function Preview({ draft }: { draft: Draft }) {
  const valid = (value: string | undefined, initial: string) => (value && /^#[0-9a-f]{6}$/i.test(value) ? value : initial);
  const themes = [
    { scheme: 'light', accent: valid(draft.get<string>('accent'), light) },
    { scheme: 'dark', accent: valid(draft.get<string>('accent_dark'), dark) },
  ] as const;
  return (
    <div className={portalCSS.columns} aria-hidden="true">
      {themes.map(({ scheme, accent }) => (
        <div key={scheme} className={css.site} data-theme={scheme} style={{ '--brand': accent } as CSSProperties}>
          <div className={css.top}>
            <LogoImage sent={draft.get<string>('logo')} stored={draft.get<string>('logo_id')} />
            <strong>{draft.get<string>('name') || text.unnamed}</strong>
            <span className={css.link}>{text.sample.keys}</span>
          </div>
          <Markdown text={(draft.get<string>('welcome') ?? '').slice(0, 400)} />
          <span className={css.button}>{text.sample.request}</span>
        </div>
      ))}
    </div>
  );
}

function Links({ draft, disabled }: { draft: Draft; disabled: boolean }) {
  const links = draft.get<LinkOf[]>('links') ?? [];
  const problems = useProblemsAt('links', true);
  const put = (next: LinkOf[]) => draft.set('links', next);
  return (
    <FieldGroup title={text.links}>
      {links.map((link, at) => (
        <div key={at} className={portalCSS.pair}>
          <TextField label={text.linkText(at + 1)} path={`links[${at}]`} disabled={disabled} value={link.text} onChange={(value) => put(links.with(at, { ...link, text: value }))} />
          <TextField label={text.linkURL(at + 1)} disabled={disabled} value={link.url} inputMode="url" onChange={(value) => put(links.with(at, { ...link, url: value }))} />
          {!disabled && (
            <Button aria-label={t.form.remove(link.text || text.linkText(at + 1))} onClick={() => put(links.toSpliced(at, 1))}>
              <X size={14} aria-hidden />
            </Button>
          )}
        </div>
      ))}
      {problems.filter((problem) => problem.path === 'links').map((problem, at) => (
        <p key={at} className={portalCSS.problem}>
          {problem.message}
        </p>
      ))}
      {!disabled && links.length < 12 && (
        <div>
          <Button dense aria-label={`${t.form.add}: ${text.links}`} onClick={() => put([...links, { text: '', url: 'https://' }])}>
            <Plus size={14} aria-hidden /> {t.form.add}
          </Button>
        </div>
      )}
    </FieldGroup>
  );
}
