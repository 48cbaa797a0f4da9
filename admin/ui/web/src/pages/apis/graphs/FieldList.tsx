// The fields of a schema with the sources of their values, and where the values are.
import { useId, useState } from 'react';
import { Button } from '../../../parts/Button';
import { Card } from '../../../parts/Card';
import type { Draft } from '../../../parts/draft';
import { SelectField, SwitchField, TextField, TextsField, useProblemsAt } from '../../../parts/fields';
import { useURLState } from '../../../parts/urlState';
import { canHave, configAt, configsPath, isMapped, mappingOf, nameOf, withMapping, type FieldConfig, type Mapping, type SchemaField, type Source } from './sources';
import { text } from './text';
import css from './graphs.module.css';

const t = text.sources.graph;

/** How many fields are drawn before more are asked for. */
const atOnce = 100;

const filters: Record<string, (field: SchemaField, owner: number | undefined) => boolean> = {
  all: () => true,
  roots: (field) => field.root !== '',
  with: (_, owner) => owner !== undefined,
  without: (field, owner) => lacks(field, owner),
};

/** A root field that no source has: it cannot be answered. */
const lacks = (field: SchemaField, owner: number | undefined) => owner === undefined && field.root !== '';

interface List {
  draft: Draft;
  may: boolean;
  fields: SchemaField[];
  sources: Source[];
  owners: Map<string, number>;
  move: (field: SchemaField, to: number | undefined) => void;
}

export function FieldList(p: List & { problem?: string }) {
  const [url, setURL] = useURLState();
  const [most, setMost] = useState(atOnce);
  const show = url.show ?? 'all';
  const wanted = (url.q ?? '').toLowerCase();
  const found = p.fields.filter((one) => (filters[show] ?? filters.all!)(one, p.owners.get(nameOf(one))) && nameOf(one).toLowerCase().includes(wanted));
  const shown = found.slice(0, most);
  const types = [...new Set(shown.map((one) => one.type))];
  return (
    <Card title={t.title}>
      {p.problem ? (
        <p className={css.wrong}>
          {t.broken} {p.problem}
        </p>
      ) : p.fields.length === 0 ? (
        <p className="muted">{t.none}</p>
      ) : (
        <>
          <div className={css.row}>
            <TextField label={t.search} type="search" value={url.q ?? ''} onChange={(q) => setURL({ q })} spellCheck={false} />
            <SelectField label={t.show} value={show} onChange={(next) => setURL({ show: next === 'all' ? undefined : next })} options={Object.keys(filters).map((value) => ({ value, label: t[value as 'all'] }))} />
          </div>
          {found.length === 0 && (
            <p className="muted" role="status">
              {t.noMatch}
            </p>
          )}
          {types.map((type) => (
            <section key={type} className={css.type} aria-label={type}>
              <h3>{type}</h3>
              <ul className={css.graph}>
                {shown
                  .filter((one) => one.type === type)
                  .map((field) => (
                    <OneField key={nameOf(field)} {...p} field={field} />
                  ))}
              </ul>
            </section>
          ))}
          {found.length > shown.length && (
            <div>
              <Button onClick={() => setMost(most + 5 * atOnce)}>{t.more(Math.min(5 * atOnce, found.length - shown.length))}</Button>
            </div>
          )}
        </>
      )}
    </Card>
  );
}

function OneField({ field, draft, may, sources, owners, move }: List & { field: SchemaField }) {
  const [open, setOpen] = useState(false);
  const note = useId();
  const name = nameOf(field);
  const owner = owners.get(name);
  const configs = draft.get<FieldConfig[]>(configsPath);
  const at = configAt(configs, field);
  const mapping = mappingOf(configs?.[at]);
  const wrong = useProblemsAt(at < 0 ? undefined : `${configsPath}[${at}]`, true);
  const missing = lacks(field, owner);
  const mapped = owner === undefined ? field.root === '' : isMapped(sources[owner]);
  return (
    <li>
      <code>
        {field.name}
        <span className="muted">{field.signature}</span>
      </code>
      <span>
        <select
          aria-label={t.source(name)}
          aria-invalid={missing || undefined}
          aria-describedby={missing ? note : undefined}
          disabled={!may}
          value={owner ?? ''}
          onChange={(event) => move(field, event.target.value === '' ? undefined : Number(event.target.value))}
        >
          <option value="">{field.root ? t.noSource : t.fromAbove}</option>
          {sources.map((source, i) =>
            canHave(source, field) || i === owner ? (
              <option key={i} value={i}>
                {source.name || text.unnamed(i + 1)}
              </option>
            ) : null,
          )}
        </select>
        {missing && (
          <span id={note} className={css.wrong}>
            {t.required}
          </span>
        )}
      </span>
      {mapped || at >= 0 ? (
        <span>
          <Button dense aria-expanded={open || wrong.length > 0} aria-label={`${t.mappingOf(name)}: ${said(mapping, field)}`} onClick={() => setOpen(!open)}>
            <code>{said(mapping, field)}</code>
          </Button>
        </span>
      ) : (
        <span />
      )}
      {(open || wrong.length > 0) && (
        <div className={css.wide}>
          <MappingFields field={field} draft={draft} may={may} at={at} mapping={mapping} config={configs?.[at]} />
        </div>
      )}
    </li>
  );
}

function said(mapping: Mapping, field: SchemaField): string {
  if (mapping.whole || (mapping.path.length === 1 && mapping.path[0] === '')) return t.whole; // as the server reads it
  return mapping.path.length > 0 ? mapping.path.join('.') : t.byName(field.name);
}

function MappingFields({ field, draft, may, at, mapping, config }: { field: SchemaField; draft: Draft; may: boolean; at: number; mapping: Mapping; config: FieldConfig | undefined }) {
  const count = draft.get<unknown[]>(configsPath)?.length ?? 0;
  const entry = `${configsPath}[${at < 0 ? count : at}]`;
  const put = (next: Mapping) => {
    const made = withMapping(config, field, next);
    if (made === undefined && at < 0) return;
    draft.set([...configsPath.split('.'), at < 0 ? count : at], made);
  };
  const others = [...useProblemsAt(`${entry}.type_name`), ...useProblemsAt(`${entry}.field_name`)];
  return (
    <div className={css.part}>
      {others.map((one, n) => (
        <p key={n} className={css.wrong} data-path={one.path} tabIndex={-1}>
          {one.message}
        </p>
      ))}
      <SwitchField label={t.wholeLabel} help={t.wholeHelp} path={`${entry}.disable_default_mapping`} disabled={!may} value={mapping.whole} onChange={(whole) => put({ ...mapping, whole })} />
      {!mapping.whole && <TextsField label={t.path} help={t.pathHelp(field.name)} path={`${entry}.path`} code disabled={!may} value={mapping.path} onChange={(path) => put({ ...mapping, path })} />}
    </div>
  );
}
