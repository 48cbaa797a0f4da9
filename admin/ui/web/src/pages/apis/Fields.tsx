// The forms of an API: fields of a table, which a test compares with the members that a
// definition has. Each edits one member of the draft.
import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import type { Draft } from '../../parts/draft';
import { NumberField, SelectField, SwitchField, TextAreaField, TextField, TextsField } from '../../parts/fields';
import css from './apis.module.css';
import table from './fields.json';
import { text as t } from './text';

interface Row {
  path: string;
  kind: string;
  label: string;
  help: string;
  options?: string[];
  unit?: string;
  /** The value of a switch that is left out. */
  default?: boolean;
}

type Tab = keyof typeof table.tabs;

/** The tab that has the field of a path, or the raw text. */
export function tabOf(path: string): string {
  for (const [tab, groups] of Object.entries(table.tabs)) {
    for (const group of groups as { fields: Row[] }[]) {
      if (group.fields.some((field) => path === field.path || path.startsWith(`${field.path}.`) || path.startsWith(`${field.path}[`))) return tab;
    }
  }
  if (path.startsWith('x-svc-streaming.streams')) return 'streams';
  if (path.startsWith('graphql.supergraph')) return 'subgraphs';
  if (path.startsWith('graphql.engine')) return 'sources';
  return path === 'graphql.schema' || path.startsWith('graphql.subgraph') ? 'schema' : 'raw';
}

/** All fields of a tab. */
export function TabFields({ draft, tab, disabled }: { draft: Draft; tab: string; disabled: boolean }) {
  const groups = (table.tabs[tab as Tab] ?? []) as { title: string; fields: Row[] }[];
  return groups.map((group) => (
    <Card key={group.title} title={group.title}>
      <div className={css.fields}>
        {group.fields.map((field) => (
          <Field key={field.path} row={field} draft={draft} disabled={disabled} />
        ))}
      </div>
    </Card>
  ));
}

function Field({ row, draft, disabled }: { row: Row; draft: Draft; disabled: boolean }) {
  const value = draft.get(row.path);
  const common = { label: row.label, help: row.help, path: row.path, disabled };
  const put = (next: unknown) => draft.set(row.path, next);
  switch (row.kind) {
    case 'switch': {
      const otherwise = row.default ?? false;
      return <SwitchField {...common} value={(value as boolean | undefined) ?? otherwise} onChange={(on) => put(on === otherwise ? undefined : on)} />;
    }
    case 'number':
      return <NumberField {...common} unit={row.unit} step="any" value={value as number | undefined} onChange={put} />;
    case 'select':
      return (
        <SelectField
          {...common}
          value={(value as string | undefined) ?? ''}
          options={[{ value: '', label: '–' }, ...row.options!.map((one) => ({ value: one, label: one }))]}
          onChange={(next) => put(next || undefined)}
        />
      );
    case 'texts':
      return <TextsField {...common} code value={(value as string[] | undefined) ?? []} onChange={(next) => put(next.length > 0 ? next : undefined)} />;
    case 'map':
      return <MapField {...common} value={(value as Record<string, string> | undefined) ?? {}} onChange={(next) => put(Object.keys(next).length > 0 ? next : undefined)} />;
    case 'area':
      return <TextAreaField {...common} code rows={3} value={(value as string | undefined) ?? ''} onChange={(next) => put(next || undefined)} />;
  }
  return <TextField {...common} value={(value as string | undefined) ?? ''} onChange={(next) => put(next || undefined)} />;
}

/** Texts by name, such as headers. */
export function MapField(p: { label: string; help: string; path: string; disabled: boolean; value: Record<string, string>; onChange: (value: Record<string, string>) => void }) {
  const [name, setName] = useState('');
  const add = () => {
    if (name && !(name in p.value)) p.onChange({ ...p.value, [name]: '' });
    setName('');
  };
  return (
    <fieldset className={css.map}>
      <legend>{p.label}</legend>
      <p className="muted">{p.help}</p>
      {Object.entries(p.value).map(([one, value]) => (
        <div key={one} className={css.entry}>
          <TextField label={one} path={`${p.path}["${one}"]`} disabled={p.disabled} code value={value} onChange={(next) => p.onChange({ ...p.value, [one]: next })} />
          <Button
            aria-label={`Remove ${one}`}
            disabled={p.disabled}
            onClick={() => p.onChange(Object.fromEntries(Object.entries(p.value).filter(([other]) => other !== one)))}
          >
            <X size={14} aria-hidden />
          </Button>
        </div>
      ))}
      {!p.disabled && (
        <div className={css.entry}>
          <TextField label={t.entries.name} path={p.path} code value={name} onChange={setName} />
          <Button disabled={!name} onClick={add} aria-label={`${t.entries.add}: ${p.label}`}>
            <Plus size={14} aria-hidden /> {t.entries.add}
          </Button>
        </div>
      )}
    </fieldset>
  );
}
