// The field rules of a policy for one GraphQL API. It is loaded when the tab is opened,
// since it has the GraphQL parser.
import { useEffect, useMemo, useRef, useState } from 'react';
import { useRead } from '../../api/query';
import { same } from '../../lib';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import type { Draft } from '../../parts/draft';
import { NumberField, SelectField } from '../../parts/fields';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { useURLState } from '../../parts/urlState';
import { accessOf, type Access } from './Access';
import { accessPath } from './paths';
import css from './policies.module.css';
import { graphqlAPIs, loadReads, loadSchema } from './read';
import { readSchema } from './schema';
import { text as t } from './text';
import { Tree } from './Tree';
import { inMode, rowName, rowsOf, sampleOf, setDepth, setField, statesOf, unknownNames, type Mode, type Row, type Rules, type Schema, type States } from './tree';

const hasRules = (entry: Access | null) => [entry?.restricted_types, entry?.allowed_types, entry?.field_access_rights].some((list) => (list ?? []).length > 0);

export default function FieldsTab({ draft, may, at }: { draft: Draft; may: boolean; at: string }) {
  const [url, setURL] = useURLState();
  const graphql = useRead(['apis', 'graphql'], graphqlAPIs, { on: ['revision'] });
  const access = accessOf(draft);
  return (
    <Loaded query={graphql} what={t.tabs.fields}>
      {(known) => {
        const ids = Object.keys(access).filter((id) => known === undefined || known.includes(id) || hasRules(access[id]!));
        const api = url.api && url.api in access ? url.api : ids[0];
        if (api === undefined) {
          return (
            <p>
              {t.fields.none} {may && <Link to={`${at}/apis`}>{t.fields.toAPIs}</Link>}
            </p>
          );
        }
        const options = [...new Set([api, ...ids])].map((id) => ({ value: id, label: access[id]?.api_name || id }));
        return (
          <>
            <div className={css.narrow}>
              <SelectField label={t.fields.api} value={api} options={options} onChange={(next) => setURL({ api: next, f: '' })} />
            </div>
            <OfAPI key={api} draft={draft} may={may} api={api} />
          </>
        );
      }}
    </Loaded>
  );
}

function OfAPI({ draft, may, api }: { draft: Draft; may: boolean; api: string }) {
  const text = useRead(['api', api, 'schema', 'text'], (signal) => loadSchema(api, signal), { on: ['revision'] });
  const read = useMemo((): { schema?: Schema; why?: string } => {
    if (!text.data) return {};
    try {
      return { schema: readSchema(text.data) };
    } catch (cause) {
      return { why: cause instanceof Error ? cause.message : String(cause) };
    }
  }, [text.data]);
  return (
    <Loaded query={text} what={t.tabs.fields}>
      {() => {
        if (read.why) return <p>{t.fields.unreadable(read.why)}</p>;
        return read.schema ? <FieldRules draft={draft} may={may} api={api} schema={read.schema} /> : <p className="muted">{t.fields.notGraphQL}</p>;
      }}
    </Loaded>
  );
}

const members = ['restricted_types', 'allowed_types', 'field_access_rights'] as const;

function FieldRules({ draft, may, api, schema }: { draft: Draft; may: boolean; api: string; schema: Schema }) {
  const [url, setURL] = useURLState();
  const entry = accessOf(draft)[api] ?? {};
  const rules: Rules = { restricted_types: entry.restricted_types, allowed_types: entry.allowed_types, field_access_rights: entry.field_access_rights };
  const ruled = JSON.stringify(rules);
  const states = useMemo(() => statesOf(rules, schema), [ruled, schema]);
  const unknown = useMemo(() => unknownNames(rules, schema), [ruled, schema]);
  const [filter, setFilter] = useState(url.f ?? '');
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(schema.roots.map(([, name]) => name).slice(0, 1)));
  const [current, setCurrent] = useState('');
  const [said, setSaid] = useState('');
  const depth = useRef<HTMLDivElement>(null);
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(later.current), []);
  const rows = useMemo(() => rowsOf(schema, open, filter), [schema, open, filter]);
  // The first field that matches is what was looked for.
  const row = rows.find((one) => rowName(one) === current) ?? (filter.trim() ? rows.find((one) => one.field) : undefined) ?? rows[0];

  const put = (next: Rules) => {
    for (const member of members) {
      if (!same(next[member], rules[member])) draft.set(['access_rights', api, member], next[member]);
    }
  };
  const allowAll = (one: Row, now: States) => (one.field ? [one.field] : one.type.fields).every((field) => now.allowed(one.type.name, field.name));
  const toggle = (one: Row) => {
    const allow = !allowAll(one, states);
    const next = setField(rules, schema, { type: one.type.name, field: one.field?.name }, allow);
    if (next.refused) return setSaid(t.fields[next.refused]);
    if (same(next.rules, rules)) return setSaid(t.fields.implied);
    put(next.rules);
    setSaid(t.fields.now(rowName(one), allow ? t.fields.allowed : t.fields.restricted));
  };
  const change = (mode: Mode) => {
    const next = inMode(rules, schema, mode);
    if (next.refused) setSaid(t.fields.nothing);
    else put(next.rules);
  };
  const find = (text: string) => {
    setFilter(text);
    clearTimeout(later.current);
    later.current = setTimeout(() => setURL({ f: text }), 250);
    setCurrent('');
  };
  return (
    <>
      <ModeField mode={states.mode} may={may} onChange={change} path={`${accessPath(api)}.${states.mode === 'only' ? 'allowed_types' : 'restricted_types'}`} />
      {states.mode === 'only' && (rules.restricted_types ?? []).length > 0 && <p>{t.fields.both}</p>}
      {unknown.length > 0 && <p>{t.fields.unknown(unknown)}</p>}
      <p role="status" className="muted">
        {said || t.fields.counts(schema.types.length, schema.types.reduce((sum, type) => sum + type.fields.length, 0))}
      </p>
      <div className={css.split}>
        <Tree
          rows={rows}
          states={states}
          filter={filter}
          onFilter={find}
          current={row ? rowName(row) : ''}
          onCurrent={setCurrent}
          onOpen={(type, on) => setOpen((now) => new Set(on ? [...now, type] : [...now].filter((one) => one !== type)))}
          onToggle={may ? toggle : undefined}
          onDepth={() => depth.current?.querySelector('input')?.focus()}
        />
        <Card title={t.fields.effect}>
          {row && (
            <div className={css.stack} ref={depth}>
              <Verdict draft={draft} entry={entry} row={row} states={states} schema={schema} />
              {row.field && <Reads api={api} type={row.type.name} field={row.field.name} />}
              {may && (
                <div className="row">
                  <Button onClick={() => toggle(row)}>{row.field ? (allowAll(row, states) ? t.fields.restrict : t.fields.allow) : allowAll(row, states) ? t.fields.restrictAll : t.fields.allowAll}</Button>
                </div>
              )}
              {row.field && (
                <NumberField
                  key={rowName(row)}
                  label={t.fields.ownDepth}
                  help={t.fields.ownDepthHelp}
                  unit={t.fields.unit}
                  min={-1}
                  step={1}
                  path={`${accessPath(api)}.field_access_rights`}
                  disabled={!may}
                  value={states.depth(row.type.name, row.field.name)}
                  onChange={(levels) => put(setDepth(rules, { type: row.type.name, field: row.field!.name }, levels))}
                />
              )}
            </div>
          )}
        </Card>
      </div>
    </>
  );
}

function ModeField({ mode, may, onChange, path }: { mode: Mode; may: boolean; onChange: (mode: Mode) => void; path: string }) {
  return (
    <fieldset className={css.modes} data-path={path} tabIndex={-1}>
      <legend>{t.fields.mode}</legend>
      {(['except', 'only'] as const).map((one) => (
        <label key={one}>
          <input type="radio" name="field-mode" checked={mode === one} disabled={!may} onChange={() => onChange(one)} />
          {t.fields.modes[one]}
        </label>
      ))}
      <p className="muted">{t.fields.modeHelp}</p>
    </fieldset>
  );
}

/** What a call of a key gets that selects the field. */
function Verdict({ draft, entry, row, states, schema }: { draft: Draft; entry: Access; row: Row; states: States; schema: Schema }) {
  const { type, field } = row;
  const sample = useMemo(() => field && sampleOf(schema, type.name, field.name), [schema, type, field]);
  if (!field) {
    const allowed = type.fields.filter((one) => states.allowed(type.name, one.name)).length;
    return (
      <>
        <p>
          <code>{type.name}</code> <Badge kind={allowed === type.fields.length ? 'ok' : 'warn'}>{t.fields.some(allowed, type.fields.length)}</Badge>
        </p>
        <p className="muted">{t.fields.choose}</p>
      </>
    );
  }
  const passes = states.allowed(type.name, field.name);
  const own = states.depth(type.name, field.name);
  const levels = (entry.limit?.max_query_depth as number | undefined) || draft.get<number>('max_query_depth') || 0;
  return (
    <>
      <p>
        <code>{rowName(row)}</code> <Badge kind={passes ? 'ok' : 'danger'}>{passes ? t.fields.allowed : t.fields.restricted}</Badge> {states.implied(type.name, field.name) && <span className="muted">{t.fields.through}</span>}
      </p>
      {sample ? <pre className={css.sample}>{sample}</pre> : <p className="muted">{t.fields.unreached}</p>}
      {passes ? <p>{t.fields.passes}</p> : <p className={css.restricted}>{states.mode === 'except' && states.whole(type.name) ? t.fields.typeRefused(type.name) : t.fields.fieldRefused(type.name, field.name)}</p>}
      {passes && own !== undefined && own > 0 && <p>{t.fields.tooDeep(own)}</p>}
      {passes && levels > 0 && <p className="muted">{t.fields.policyDepth(levels)}</p>}
      <p className="muted">{t.fields.others}</p>
    </>
  );
}

/** How often the field was read, and by whom, whatever their policies. */
function Reads({ api, type, field }: { api: string; type: string; field: string }) {
  const reads = useRead(['api', api, 'reads', type], (signal) => loadReads(api, type, signal), { staleTime: 60_000 });
  return (
    <Loaded query={reads} lines={1}>
      {({ since, silent, fields }) => {
        if (!since) return <p className="muted">{t.fields.notCounted}</p>;
        const read = fields.find((one) => one.type === type && one.field === field);
        return (
          <>
            <p>{read ? t.fields.reads(read.count, read.keys_total, when(since), when(read.last_used)) : t.fields.notRead(when(since))}</p>
            {read && (
              <ul className={css.readers} aria-label={t.fields.readers}>
                {read.keys.map((one) => (
                  <li key={one.key}>
                    {one.key ? <code>{one.key}</code> : t.fields.noKey} {t.fields.times(one.count)}
                  </li>
                ))}
              </ul>
            )}
            {silent.length > 0 && <p className="muted">{t.fields.silent(silent)}</p>}
          </>
        );
      }}
    </Loaded>
  );
}

const when = (time: string) => new Date(time).toLocaleString();
