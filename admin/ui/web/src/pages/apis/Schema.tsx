import { useEffect, useState, type ReactNode } from 'react';
import type { components } from '../../api.gen';
import { queryClient, useRead, useWrite } from '../../api/query';
import type { Problem } from '../../api/failure';
import { Badge } from '../../parts/Badge';
import { Button } from '../../parts/Button';
import { Card, Facts } from '../../parts/Card';
import { CodeEditor } from '../../parts/code';
import { ID } from '../../parts/Copy';
import type { Draft } from '../../parts/draft';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { Loaded } from '../../parts/Loaded';
import { Time } from '../../parts/Time';
import { toast } from '../../parts/toasts';
import { number } from '../../text/en';
import { checkSchema, schemaHistory, schemaStatus, syncSchema } from './read';
import { text as t } from './text';
import css from './apis.module.css';

type Report = components['schemas']['Report'];

/** The schema as text, what the upstream's would change, and how it is fetched. */
export function SchemaTab({ id, draft, may, fields }: { id: string; draft: Draft; may: boolean; fields: ReactNode }) {
  const graphql = draft.get('graphql.enabled') === true;
  const mode = draft.get<string>('graphql.execution_mode');
  const federated = mode === 'subgraph' && !!draft.get<string>('graphql.subgraph.sdl')?.trim();
  const derived = mode === 'supergraph' ? t.schema.composed : federated ? t.schema.ofSubgraph : undefined;
  const upstream = graphql && !derived && mode !== 'executionEngine';
  return (
    <>
      {!graphql && <p className="muted">{`${t.schema.off} ${may ? t.schema.turnOn : ''}`}</p>}
      {upstream && <Preview id={id} draft={draft} may={may} />}
      {graphql && mode === 'subgraph' && <SubgraphText draft={draft} may={may} />}
      {graphql && <SchemaText draft={draft} may={may && !derived} derived={derived} />}
      {fields}
      {graphql && <Fetched id={id} upstream={upstream} />}
    </>
  );
}

/** The schema that a subgraph has for supergraphs. */
function SubgraphText({ draft, may }: { draft: Draft; may: boolean }) {
  const path = 'graphql.subgraph.sdl';
  const problems = draft.problems.filter((one) => one.path === path).map((one) => ({ message: one.message, line: Number(/\(this subgraph, line (\d+)/.exec(one.message)?.[1]) || undefined }));
  return (
    <Card title={t.schema.subgraph}>
      <p className="muted">{t.schema.subgraphHelp}</p>
      <div data-path={path} tabIndex={-1}>
        <CodeEditor label={t.schema.subgraph} language="graphql" value={draft.get<string>(path) ?? ''} onChange={may ? (next) => draft.set(path, next || undefined) : undefined} readOnly={!may} problems={problems} lines={16} />
      </div>
      <p role="status" className="muted">
        {problems.map((one) => one.message).join('; ')}
      </p>
    </Card>
  );
}

/** The schema as text; `derived` says what it follows from where it is not written here. */
export function SchemaText({ draft, may, derived }: { draft: Draft; may: boolean; derived?: string }) {
  const schema = draft.get<string>('graphql.schema') ?? '';
  const [problems, setProblems] = useState<Problem[]>([]);
  useEffect(() => {
    if (!schema) return;
    const stop = new AbortController();
    const wait = setTimeout(() => {
      checkSchema(schema, stop.signal)
        .then((found) => setProblems((found.problems ?? []).map((one) => ({ path: 'graphql.schema', ...one }))))
        .catch(() => undefined); // the check of the whole draft says what is wrong
    }, 400);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [schema]);
  return (
    <Card title={t.schema.editor}>
      {derived && <p className="muted">{derived}</p>}
      <div data-path="graphql.schema" tabIndex={-1}>
        <CodeEditor
          label={t.schema.editor}
          language="graphql"
          value={schema}
          onChange={may ? (next) => draft.set('graphql.schema', next) : undefined}
          readOnly={!may}
          problems={schema ? problems : []}
          lines={24}
        />
      </div>
      <p role="status" className="muted">
        {schema && problems.length === 0 ? t.schema.valid : problems.map((one) => `${one.line}:${one.column} ${one.message}`).join('; ')}
      </p>
    </Card>
  );
}

/** What the upstream's schema would change and break; nothing is stored before Apply. */
function Preview({ id, draft, may }: { id: string; draft: Draft; may: boolean }) {
  const [report, setReport] = useState<Report>();
  const preview = useWrite(() => syncSchema(id, { apply: false }), { done: (answer) => setReport(answer.Meta) });
  const apply = useWrite((force: boolean) => syncSchema(id, { apply: true, force }), {
    done: () => {
      setReport(undefined);
      toast({ kind: 'ok', text: t.schema.applied });
      void queryClient.invalidateQueries({ queryKey: ['api', id] });
    },
  });
  if (!may) return null;
  const broken = report?.broken ?? [];
  return (
    <Card
      title={t.schema.upstream}
      actions={
        <Button busy={preview.isPending} disabled={draft.changed} onClick={() => preview.mutate(undefined)}>
          {t.schema.preview}
        </Button>
      }
    >
      {draft.changed && <p className="muted">{t.schema.unsaved}</p>}
      {preview.error && <ErrorPanel failure={preview.error} />}
      {apply.error && <ErrorPanel failure={apply.error} />}
      {report && report.changes_total === 0 && <p role="status">{t.schema.same}</p>}
      {report && report.changes_total > 0 && (
        <div className={css.stack} role="status">
          <p>{t.schema.changes(report.changes_total, report.breaking)}</p>
          <List label={t.schema.preview} heads={[t.schema.level, t.schema.place, t.schema.change]}>
            {(report.changes ?? []).slice(0, 200).map((one, n) => (
              <tr key={n}>
                <td>
                  <Badge kind={one.level === 'breaking' ? 'danger' : one.level === 'dangerous' ? 'warn' : 'plain'}>{one.level}</Badge>
                </td>
                <td>
                  <code>{one.place}</code>
                </td>
                <td>{one.message}</td>
              </tr>
            ))}
          </List>
          <h3>{t.schema.breaks}</h3>
          {broken.length === 0 ? (
            <p className="muted">{t.schema.breaksNone}</p>
          ) : (
            <List label={t.schema.breaks} heads={[t.schema.where, t.schema.problem]}>
              {broken.slice(0, 200).map((one, n) => (
                <tr key={n}>
                  <td>
                    {one.policy ?? one.key ?? id} <code>{one.path}</code>
                  </td>
                  <td>{one.message}</td>
                </tr>
              ))}
            </List>
          )}
          <div className="row">
            <Button kind={broken.length > 0 ? 'danger' : 'primary'} busy={apply.isPending} onClick={() => apply.mutate(broken.length > 0)}>
              {broken.length > 0 ? t.schema.applyForce : t.schema.apply}
            </Button>
          </div>
        </div>
      )}
    </Card>
  );
}

function List({ label, heads, children }: { label: string; heads: string[]; children: ReactNode }) {
  return (
    <div className={css.scroll}>
      <table className={css.table} aria-label={label}>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** How fetching it goes, and the schemas before. */
function Fetched({ id, upstream }: { id: string; upstream: boolean }) {
  const status = useRead(['api', id, 'schema', 'status'], (signal) => schemaStatus(id, signal), { enabled: upstream, on: ['revision'] });
  const past = useRead(['api', id, 'schema', 'history'], (signal) => schemaHistory(id, signal), { on: ['revision'] });
  return (
    <>
      {upstream && (
        <Card title={t.schema.fetched}>
          <Loaded query={status}>
            {(one) => (
              <Facts
                of={[
                  [t.schema.fetched, one.fetched_at ? <Time at={one.fetched_at} /> : t.schema.never],
                  ...(one.last_sync_error ? [[t.schema.failing, one.last_sync_error] as [string, ReactNode]] : []),
                  [t.operations.hash, <ID value={one.schema_hash} />],
                ]}
              />
            )}
          </Loaded>
        </Card>
      )}
      <Card title={t.schema.past}>
        <Loaded query={past}>
          {(all) => (
            <List label={t.schema.past} heads={[t.history.when, t.history.who, t.schema.source, t.history.revision, t.operations.hash]}>
              {(all.schemas ?? []).map((one) => (
                <tr key={`${one.hash}${one.at}`}>
                  <td>
                    <Time at={one.at} />
                  </td>
                  <td>{one.author}</td>
                  <td>{one.source}</td>
                  <td>{number(one.revision)}</td>
                  <td>
                    <ID value={one.hash} />
                  </td>
                </tr>
              ))}
            </List>
          )}
        </Loaded>
      </Card>
    </>
  );
}
