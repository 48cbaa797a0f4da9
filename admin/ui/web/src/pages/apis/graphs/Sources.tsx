// A data graph: its data sources, which of them has the value of which field, and a trial.
import { X } from 'lucide-react';
import { useMemo } from 'react';
import { Button } from '../../../parts/Button';
import { Card } from '../../../parts/Card';
import { CodeEditor } from '../../../parts/code';
import type { Draft } from '../../../parts/draft';
import { EmptyState } from '../../../parts/EmptyState';
import { NumberField, SelectField, SwitchField, TextField, TextsField } from '../../../parts/fields';
import { PickerField, type Choice as Picked } from '../../../parts/Picker';
import { useURLState } from '../../../parts/urlState';
import { APIPlayground } from '../../../playground/APIPlayground';
import { MapField } from '../Fields';
import { FieldList } from './FieldList';
import { Entry, PairsField, ProblemsAt, useOpened } from './parts';
import { attach, attached, canHave, enginePath, fieldsOf, isTemplated, kindOf, kinds, nameOf, newSource, ownersOf, sourcesOf, sourcesPath, variablesOf, type SchemaField, type Source, type SourceKind } from './sources';
import { freeName } from './compose';
import { text } from './text';
import css from './graphs.module.css';

const t = text.sources;

export default function Sources({ id, draft, may }: { id?: string; draft: Draft; may: boolean }) {
  const sources = sourcesOf(draft.get(sourcesPath));
  const schema = draft.get<string>('graphql.schema') ?? '';
  const { fields, problem } = useMemo(() => fieldsOf(schema), [schema]);
  const owners = ownersOf(sources);
  const [open, setOpen] = useOpened(sourcesPath);
  const move = (field: SchemaField, to: number | undefined) => {
    for (const [i, next] of attach(sources, field, to)) draft.set(`${sourcesPath}[${i}].root_fields`, next.length > 0 ? next : undefined);
  };
  const add = (kind: SourceKind) => {
    const first = fields.find((one) => one.root !== '' && canHave({ kind, config: {} }, one) && !owners.has(nameOf(one)));
    draft.set(
      [...sourcesPath.split('.'), sources.length],
      newSource(kind, freeName(first?.name ?? kind.toLowerCase(), sources.map((one) => one.name)), first),
    );
    setOpen(sources.length);
  };
  return (
    <div className={css.stack}>
      {draft.get('graphql.execution_mode') !== 'executionEngine' && <p>{t.otherMode}</p>}
      <Card title={t.title}>
        {sources.length === 0 && <EmptyState {...t.none} />}
        <ProblemsAt path={sourcesPath} />
        <ol className={css.members}>
          {sources.map((source, i) => (
            <Entry
              key={i}
              path={`${sourcesPath}[${i}]`}
              name={source.name || text.unnamed(i + 1)}
              note={[source.kind, source.config?.url ?? source.config?.broker_addresses?.join(', '), t.count(attached(source).length)].filter(Boolean).join(' · ')}
              open={open === i}
              onToggle={() => setOpen(open === i ? undefined : i)}
              onRemove={
                may
                  ? () => {
                      draft.set([...sourcesPath.split('.'), i], undefined);
                      setOpen(undefined);
                    }
                  : undefined
              }
            >
              <OneSource index={i} source={source} draft={draft} may={may} fields={fields} owners={owners} move={move} />
            </Entry>
          ))}
        </ol>
        {may && (
          <div className={css.row}>
            {kinds.map((kind) => (
              <Button key={kind} onClick={() => add(kind)}>
                {t.add[kind]}
              </Button>
            ))}
          </div>
        )}
      </Card>
      <FieldList draft={draft} may={may} fields={fields} problem={problem} sources={sources} owners={owners} move={move} />
      <Card title={t.globalHeaders}>
        <PairsField
          label={text.headers}
          help={t.globalHeadersHelp}
          path={`${enginePath}.global_headers`}
          names={{ name: 'key', value: 'value' }}
          disabled={!may}
          value={draft.get(`${enginePath}.global_headers`) ?? []}
          onChange={(next) => draft.set(`${enginePath}.global_headers`, next.length > 0 ? next : undefined)}
        />
      </Card>
      {id !== undefined && <Trial id={id} draft={draft} />}
    </div>
  );
}

interface One {
  index: number;
  source: Source;
  draft: Draft;
  may: boolean;
  fields: SchemaField[];
  owners: Map<string, number>;
  move: (field: SchemaField, to: number | undefined) => void;
}

function OneSource(p: One) {
  const { index, source, draft, may } = p;
  const at = `${sourcesPath}[${index}]`;
  const common = (name: string) => ({ path: `${at}.${name}`, disabled: !may });
  const put = (name: string, value: unknown) => draft.set(`${at}.${name}`, value);
  const kind = kindOf(source);
  const config = source.config ?? {};
  return (
    <>
      <div className={css.fields}>
        <TextField label={text.name} help={t.nameHelp} {...common('name')} required code value={source.name ?? ''} onChange={(next) => put('name', next)} />
        <SelectField label={t.kind} {...common('kind')} value={source.kind ?? ''} options={kinds.map((one) => ({ value: one, label: one }))} onChange={(next) => put('kind', next)} />
        {kind === 'REST' && (
          <SelectField
            label={t.method}
            {...common('config.method')}
            value={config.method ?? 'GET'}
            options={['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((one) => ({ value: one, label: one }))}
            onChange={(next) => put('config.method', next)}
          />
        )}
        {kind !== 'msgbroker' && <NumberField label={t.timeout} help={t.timeoutHelp} unit="s" step="any" {...common('config.timeout')} value={config.timeout} onChange={(next) => put('config.timeout', next)} />}
      </div>
      {kind === 'msgbroker' ? (
        <>
          <Attached {...p} />
          <AsTopics config={config} common={common} put={put} />
        </>
      ) : (
        <AsRequests {...p} kind={kind} />
      )}
    </>
  );
}

/** A source that is sent requests. */
function AsRequests(p: One & { kind: 'REST' | 'GraphQL' }) {
  const { index, source, draft, may, kind } = p;
  const at = `${sourcesPath}[${index}]`;
  const common = (name: string) => ({ path: `${at}.${name}`, disabled: !may });
  const put = (name: string, value: unknown) => draft.set(`${at}.${name}`, value);
  const config = source.config ?? {};
  return (
    <>
      <TextField
        label={text.url}
        help={t.urlHelp[kind]}
        {...common('config.url')}
        required
        code
        placeholder={kind === 'REST' ? 'https://users.example.com/users/{{.arguments.id}}' : 'https://users.example.com/graphql'}
        value={config.url ?? ''}
        onChange={(next) => put('config.url', next)}
      />
      <Variables source={source} fields={p.fields} />
      <Attached {...p} />
      <MapField label={text.headers} help={t.globalHeadersHelp} {...common('config.headers')} value={config.headers ?? {}} onChange={(next) => put('config.headers', Object.keys(next).length > 0 ? next : undefined)} />
      {kind === 'GraphQL' && <AsGraphQL config={config} common={common} put={put} />}
      {kind === 'REST' && (
        <>
          <PairsField label={t.query} help={t.queryHelp} {...common('config.query')} names={{ name: 'name', value: 'value' }} value={config.query ?? []} onChange={(next) => put('config.query', next.length > 0 ? next : undefined)} />
          <div className={css.part}>
            <h3>{t.body}</h3>
            <p className="muted">{t.bodyHelp}</p>
            <CodeEditor label={t.body} language="text" value={config.body ?? ''} onChange={may ? (next) => put('config.body', next || undefined) : undefined} readOnly={!may} lines={6} />
            <ProblemsAt path={`${at}.config.body`} />
          </div>
        </>
      )}
    </>
  );
}

/** A source whose messages are the events of subscriptions. */
function AsTopics({ config, common, put }: Common) {
  const texts = (name: string) => (next: string[]) => put(name, next.length > 0 ? next : undefined);
  const kafka = !(config.broker_addresses ?? []).some((one) => /^(amqps?|inproc):/.test(one));
  return (
    <>
      <TextsField label={t.addresses} help={t.addressesHelp} {...common('config.broker_addresses')} code value={config.broker_addresses ?? []} onChange={texts('config.broker_addresses')} />
      <TextsField label={t.topics} help={t.topicsHelp} {...common('config.topics')} code value={config.topics ?? []} onChange={texts('config.topics')} />
      <div className={css.fields}>
        <TextField label={t.group} help={t.groupHelp} {...common('config.group_id')} code value={config.group_id ?? ''} onChange={(next) => put('config.group_id', next || undefined)} />
        <TextField label={t.client} {...common('config.client_id')} code placeholder="sluice" value={config.client_id ?? ''} onChange={(next) => put('config.client_id', next || undefined)} />
        {config.group_id && <SwitchField label={t.latest} help={t.latestHelp} {...common('config.start_consuming_latest')} value={config.start_consuming_latest ?? false} onChange={(on) => put('config.start_consuming_latest', on || undefined)} />}
      </div>
      {kafka && (
        <div className={css.fields}>
          <Choice label={t.isolation} options={['ReadUncommitted', 'ReadCommitted']} {...common('config.isolation_level')} value={config.isolation_level} onChange={(next) => put('config.isolation_level', next)} />
          {config.group_id && (
            <Choice
              label={t.balance}
              options={['BalanceStrategyRange', 'BalanceStrategyRoundRobin', 'BalanceStrategySticky']}
              {...common('config.balance_strategy')}
              value={config.balance_strategy}
              onChange={(next) => put('config.balance_strategy', next)}
            />
          )}
        </div>
      )}
      <div className={css.fields}>
        <SwitchField label={t.sasl} help={t.saslHelp} {...common('config.sasl.enable')} value={config.sasl?.enable ?? false} onChange={(on) => put('config.sasl.enable', on || undefined)} />
        {config.sasl?.enable && (
          <>
            <TextField label={t.user} {...common('config.sasl.user')} code value={config.sasl.user ?? ''} onChange={(next) => put('config.sasl.user', next || undefined)} />
            <TextField label={t.password} code help={t.passwordHelp} {...common('config.sasl.password')} value={config.sasl.password ?? ''} onChange={(next) => put('config.sasl.password', next || undefined)} />
          </>
        )}
      </div>
    </>
  );
}

/** One of several values, or none. */
function Choice(p: { label: string; path: string; disabled: boolean; options: string[]; value: string | undefined; onChange: (value: string | undefined) => void }) {
  return <SelectField {...p} value={p.value ?? ''} options={[{ value: '', label: '–' }, ...p.options.map((one) => ({ value: one, label: one }))]} onChange={(next) => p.onChange(next || undefined)} />;
}

interface Common {
  config: NonNullable<Source['config']>;
  common: (name: string) => { path: string; disabled: boolean };
  put: (name: string, value: unknown) => void;
}

/** What only GraphQL sources have: how they stream, or the operation that they are sent. */
function AsGraphQL({ config, common, put }: Common) {
  const own = config.has_operation ?? false;
  const variables: unknown = config.variables ?? {};
  const { disabled, path } = common('config.operation');
  return (
    <>
      <div className={css.fields}>
        {!own && (
          <Choice
            label={text.supergraph.subscriptions}
            options={['graphql-ws', 'graphql-transport-ws', 'sse']}
            {...common('config.subscription_type')}
            value={config.subscription_type}
            onChange={(next) => put('config.subscription_type', next)}
          />
        )}
        {!own && config.subscription_type === 'sse' && <SwitchField label={text.supergraph.post} {...common('config.sse_use_post')} value={config.sse_use_post ?? false} onChange={(on) => put('config.sse_use_post', on || undefined)} />}
        <SwitchField label={t.own} help={t.ownHelp} {...common('config.has_operation')} value={own} onChange={(on) => put('config.has_operation', on || undefined)} />
      </div>
      {own && (
        <>
          <div className={css.part}>
            <h3>{t.operation}</h3>
            <CodeEditor label={t.operation} language="graphql" value={config.operation ?? ''} onChange={disabled ? undefined : (next) => put('config.operation', next || undefined)} readOnly={disabled} lines={8} />
            <ProblemsAt path={path} />
          </div>
          {isTexts(variables) ? (
            <MapField label={t.operationVariables} help={t.operationVariablesHelp} {...common('config.variables')} value={variables} onChange={(next) => put('config.variables', Object.keys(next).length > 0 ? next : undefined)} />
          ) : (
            <p className="muted">{t.otherVariables}</p>
          )}
        </>
      )}
    </>
  );
}

const isTexts = (value: unknown): value is Record<string, string> => typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every((one) => typeof one === 'string');

/** What may stand in the texts of a source. */
function Variables({ source, fields }: { source: Source; fields: SchemaField[] }) {
  return (
    <div className={css.part}>
      <h3>{t.variables}</h3>
      <ul className={css.chips}>
        {variablesOf(source, fields).map((one) => (
          <li key={one}>
            <code>{one}</code>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The fields of a source. */
function Attached({ index, source, draft, may, fields, owners, move }: One) {
  const at = `${sourcesPath}[${index}].root_fields`;
  const known = new Map(fields.map((one) => [nameOf(one), one]));
  const search = (q: string): Promise<Picked[]> => {
    const wanted = q.toLowerCase();
    const free = fields.filter((one) => canHave(source, one) && owners.get(nameOf(one)) !== index && nameOf(one).toLowerCase().includes(wanted));
    return Promise.resolve(free.slice(0, 50).map((one) => ({ value: nameOf(one), label: nameOf(one), note: one.signature })));
  };
  return (
    <div className={css.part}>
      <h3>{t.fieldsShort}</h3>
      <p className="muted">{t.fieldsHelp}</p>
      <ProblemsAt path={at} />
      <ul className={css.chips} aria-label={t.fields(source.name || text.unnamed(index + 1))}>
        {attached(source).map((one, n) => (
          <li key={n}>
            <code>{nameOf(one)}</code>
            {!known.has(nameOf(one)) && fields.length > 0 && <span className={css.wrong}>{t.unknown}</span>}
            {may && (
              <Button dense kind="quiet" aria-label={text.removeNamed(nameOf(one))} onClick={() => move({ ...one, signature: '', args: [], root: '', leaf: true }, undefined)}>
                <X size={14} aria-hidden />
              </Button>
            )}
          </li>
        ))}
      </ul>
      <Places draft={draft} at={at} />
      {may && (
        <PickerField
          label={t.addField}
          help={source.kind === 'msgbroker' || !isTemplated(source) ? t.addFieldHelp[kindOf(source)] : t.addFieldHelp.REST}
          queryKey={['fields', index, [...owners].join(), fields.length]}
          search={search}
          value=""
          onChange={(name) => {
            const field = known.get(name);
            if (field) move(field, index);
          }}
        />
      )}
    </div>
  );
}

/** Problems of the single entries of root_fields, which have no fields of their own here. */
function Places({ draft, at }: { draft: Draft; at: string }) {
  const below = draft.problems.filter((one) => one.path.startsWith(`${at}[`));
  if (below.length === 0) return null;
  return (
    <ul className={css.wrong}>
      {below.map((one, n) => (
        <li key={n} data-path={one.path} tabIndex={-1}>
          {String(draft.get(one.path) ?? one.path.slice(at.length))}: {one.message}
        </li>
      ))}
    </ul>
  );
}

/** Operations on what is published: no route runs them on a draft. */
function Trial({ id, draft }: { id: string; draft: Draft }) {
  const [url, setURL] = useURLState();
  const opened = url.try === 'on';
  return (
    <Card
      title={t.try}
      actions={
        <Button aria-expanded={opened} onClick={() => setURL({ try: opened ? undefined : 'on' })}>
          {opened ? t.close : t.open}
        </Button>
      }
    >
      <p className={draft.changed ? undefined : 'muted'}>
        {t.tryHelp} {draft.changed && <strong>{t.tryDraft}</strong>}
      </p>
      {opened && <APIPlayground id={id} />}
    </Card>
  );
}
