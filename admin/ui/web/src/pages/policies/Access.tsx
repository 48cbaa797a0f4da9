// The APIs of a policy, and what may be done with each.
import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { Badge } from '../../parts/Badge';
import { Button, LinkButton } from '../../parts/Button';
import { Card } from '../../parts/Card';
import type { Draft } from '../../parts/draft';
import { SwitchField, TextField, TextsField, useProblemsAt } from '../../parts/fields';
import { PickerField } from '../../parts/Picker';
import { LimitFields } from './Form';
import { accessPath } from './paths';
import css from './policies.module.css';
import { findAPIs } from './read';
import { text as t } from './text';
import type { Rules } from './tree';

export interface Access extends Rules {
  api_id?: string;
  api_name?: string;
  versions?: string[] | null;
  allowed_urls?: { url: string; methods: string[] }[] | null;
  disable_introspection?: boolean;
  trusted_documents_only?: boolean;
  limit?: Record<string, unknown> | null;
}

export const accessOf = (draft: Draft) => draft.get<Record<string, Access | null>>('access_rights') ?? {};

const most = 30; // entries that are drawn at once

/** The APIs that a policy or a key names; none says that there is none. */
export function AccessTab({ draft, may, at, none = t.apis.none }: { draft: Draft; may: boolean; at?: string; none?: string }) {
  const [q, setQ] = useState('');
  const [added, setAdded] = useState('');
  const all = Object.entries(accessOf(draft));
  const wanted = q.trim().toLowerCase();
  const found = all.filter(([id, entry]) => !wanted || id.toLowerCase().includes(wanted) || entry?.api_name?.toLowerCase().includes(wanted));
  const add = async (id: string) => {
    if (!id || accessOf(draft)[id]) return;
    const named = await findAPIs(id, new AbortController().signal).catch(() => []);
    const name = named.find((one) => one.value === id)?.label;
    draft.set(['access_rights', id], { api_id: id, ...(name ? { api_name: name } : {}) });
    setAdded(id);
    setQ('');
  };
  return (
    <>
      {may && (
        <Card title={t.apis.add}>
          <PickerField label={t.tabs.apis!} help={t.apis.addHelp} path="access_rights" queryKey={['apis', 'pick']} search={findAPIs} value="" onChange={(id) => void add(id)} />
        </Card>
      )}
      {all.length === 0 && none && <p className="muted">{none}</p>}
      {all.length > 5 && (
        <div className={css.narrow}>
          <TextField label={t.apis.find} type="search" value={q} onChange={setQ} />
          <p className="muted" role="status">
            {t.apis.shown(Math.min(found.length, most), all.length)}
          </p>
        </div>
      )}
      {found.slice(0, most).map(([id, entry]) => (
        <Entry key={id} draft={draft} id={id} entry={entry ?? {}} may={may} at={at} open={all.length <= 3 || id === added} />
      ))}
    </>
  );
}

function Entry({ draft, id, entry, may, at, open }: { draft: Draft; id: string; entry: Access; may: boolean; at?: string; open: boolean }) {
  const path = accessPath(id);
  const name = entry.api_name || id;
  const wrong = useProblemsAt(path, true).length > 0; // a field has to be in sight to take the focus
  const put = (member: string, value: unknown) => draft.set(['access_rights', id, member], value);
  const common = (member: string) => ({ path: `${path}.${member}`, disabled: !may });
  return (
    <Card
      title={
        <span data-path={path} tabIndex={-1}>
          {name} {name !== id && <span className="muted mono">{id}</span>}
        </span>
      }
      actions={
        <span className="row">
          <LinkButton dense to={`/apis/${encodeURIComponent(id)}`} aria-label={`${t.apis.open}: ${name}`}>
            {t.apis.open}
          </LinkButton>
          {at && (
            <LinkButton dense to={`${at}/fields`} search={{ api: id }} aria-label={`${t.apis.fields}: ${name}`}>
              {t.apis.fields}
            </LinkButton>
          )}
          {may && (
            <Button dense kind="danger" aria-label={t.apis.remove(name)} onClick={() => draft.set(['access_rights', id], undefined)}>
              <X size={14} aria-hidden />
            </Button>
          )}
        </span>
      }
    >
      <details className={css.more} open={open || wrong || undefined}>
        <summary>
          {t.apis.rules} {entry.limit && <Badge>{t.apis.own}</Badge>} {(entry.allowed_urls ?? []).length > 0 && <Badge>{t.apis.paths(entry.allowed_urls!.length)}</Badge>}
        </summary>
        <div className={css.stack}>
          <SwitchField label={t.apis.own} help={t.apis.ownHelp} {...common('limit')} value={!!entry.limit} onChange={(on) => put('limit', on ? {} : undefined)} />
          {entry.limit && <LimitFields draft={draft} disabled={!may} api={id} />}
          <URLs path={path} value={entry.allowed_urls ?? []} may={may} onChange={(next) => put('allowed_urls', next.length > 0 ? next : undefined)} />
          <div className={css.fields}>
            <SwitchField label={t.apis.introspection} help={t.apis.introspectionHelp} {...common('disable_introspection')} value={entry.disable_introspection ?? false} onChange={(on) => put('disable_introspection', on || undefined)} />
            <SwitchField label={t.apis.trusted} help={t.apis.trustedHelp} {...common('trusted_documents_only')} value={entry.trusted_documents_only ?? false} onChange={(on) => put('trusted_documents_only', on || undefined)} />
            <TextsField label={t.apis.versions} help={t.apis.versionsHelp} {...common('versions')} value={entry.versions ?? []} onChange={(next) => put('versions', next.length > 0 ? next : undefined)} />
          </div>
        </div>
      </details>
    </Card>
  );
}

type Allowed = NonNullable<Access['allowed_urls']>;

function URLs({ path, value, may, onChange }: { path: string; value: Allowed; may: boolean; onChange: (value: Allowed) => void }) {
  return (
    <fieldset className={css.urls}>
      <legend>{t.apis.urls}</legend>
      <p className="muted">{t.apis.urlsHelp}</p>
      {value.map((one, n) => (
        <div key={n} className={css.url}>
          <TextField label={t.apis.url} path={`${path}.allowed_urls[${n}].url`} code disabled={!may} value={one.url} onChange={(url) => onChange(value.with(n, { ...one, url }))} />
          <Methods path={`${path}.allowed_urls[${n}].methods`} disabled={!may} value={one.methods ?? []} onChange={(methods) => onChange(value.with(n, { ...one, methods }))} />
          {may && (
            <Button aria-label={t.apis.removeURL(one.url)} onClick={() => onChange(value.toSpliced(n, 1))}>
              <X size={14} aria-hidden />
            </Button>
          )}
        </div>
      ))}
      {may && (
        <div>
          <Button dense data-path={`${path}.allowed_urls`} onClick={() => onChange([...value, { url: '/', methods: ['GET'] }])}>
            <Plus size={14} aria-hidden /> {t.apis.addURL}
          </Button>
        </div>
      )}
    </fieldset>
  );
}

/** Methods as one text, so that a comma can be typed. */
function Methods({ path, value, disabled, onChange }: { path: string; value: string[]; disabled: boolean; onChange: (value: string[]) => void }) {
  const [typed, setTyped] = useState<string>();
  const list = (text: string) => text.split(',').map((one) => one.trim().toUpperCase()).filter(Boolean);
  const current = typed !== undefined && list(typed).join() === value.join() ? typed : value.join(', ');
  return <TextField label={t.apis.methods} help={t.apis.methodsHelp} path={path} disabled={disabled} value={current} onChange={(text) => (setTyped(text), onChange(list(text)))} />;
}
