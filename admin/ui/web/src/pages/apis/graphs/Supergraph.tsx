// A supergraph: its subgraphs, whether they can be composed, and the schema that comes of it.
import { useEffect, useMemo, useRef, useState } from 'react';
import { request, useRead, type components } from '../../../api';
import { Badge } from '../../../parts/Badge';
import { Button } from '../../../parts/Button';
import { Card, Facts } from '../../../parts/Card';
import { CodeEditor } from '../../../parts/code';
import type { Draft } from '../../../parts/draft';
import { EmptyState } from '../../../parts/EmptyState';
import { ErrorPanel } from '../../../parts/ErrorPanel';
import { SelectField, SwitchField, TextField } from '../../../parts/fields';
import { Link } from '../../../parts/Link';
import { PickerField, type Choice } from '../../../parts/Picker';
import { Skeleton } from '../../../parts/Skeleton';
import { Time } from '../../../parts/Time';
import { slugOf } from '../begin';
import { MapField } from '../Fields';
import { loadRows } from '../read';
import { composedBody, freeName, marksOf, memberPath, membersOf, membersPath, offsetOfLine, searched, sentenceOf, subjectOf, type ComposeProblem, type Composition, type Mark, type Member } from './compose';
import { Entry, ProblemsAt, useOpened } from './parts';
import { text } from './text';
import css from './graphs.module.css';

const t = text.supergraph;

/** Where a problem is followed to; n tells following it twice apart. */
interface Jump {
  subgraph: string;
  line: number;
  n: number;
}

export default function Supergraph({ id, draft, may }: { id?: string; draft: Draft; may: boolean }) {
  const members = membersOf(draft.get(membersPath));
  const composed = useComposition(members);
  const [open, setOpen] = useOpened(membersPath);
  const [jump, setJump] = useState<Jump>();
  const marksBy = useMemo(() => marksOf(composed.made?.problems ?? []), [composed.made]);
  const follow = (subgraph: string, line = 1) => {
    const at = members.findIndex((one) => one.name === subgraph);
    if (at < 0) return;
    setOpen(at);
    setJump((before) => ({ subgraph, line, n: (before?.n ?? 0) + 1 }));
  };
  const add = (member: Member) => {
    draft.set([...membersPath.split('.'), members.length], member);
    setOpen(members.length);
  };
  return (
    <div className={css.stack}>
      {draft.get('graphql.execution_mode') !== 'supergraph' && <p>{t.otherMode}</p>}
      <Card title={t.subgraphs}>
        {members.length === 0 && <EmptyState {...t.none} />}
        <ProblemsAt path={membersPath} />
        <ol className={css.members}>
          {members.map((member, i) => {
            const marks = marksBy.get(member.name ?? '') ?? [];
            return (
              <Entry
                key={i}
                path={memberPath(i)}
                name={member.name || text.unnamed(i + 1)}
                note={member.api_id ? t.from.api(member.api_id) : member.url || t.from.nowhere}
                problems={marks.length}
                open={open === i}
                onToggle={() => setOpen(open === i ? undefined : i)}
                onRemove={
                  may
                    ? () => {
                        draft.set([...membersPath.split('.'), i], undefined);
                        setOpen(undefined);
                      }
                    : undefined
                }
              >
                <OneSubgraph index={i} member={member} draft={draft} may={may} marks={marks} jump={jump?.subgraph === member.name ? jump : undefined} />
              </Entry>
            );
          })}
        </ol>
        {may && <Adding id={id} members={members} add={add} />}
      </Card>
      <CompositionCard draft={draft} members={members} composed={composed} follow={follow} />
      <Merged draft={draft} made={composed.made} />
      <Card title={t.settings}>
        <MapField
          label={t.globalHeaders}
          help={t.globalHeadersHelp}
          path="graphql.supergraph.global_headers"
          disabled={!may}
          value={draft.get<Record<string, string>>('graphql.supergraph.global_headers') ?? {}}
          onChange={(next) => draft.set('graphql.supergraph.global_headers', Object.keys(next).length > 0 ? next : undefined)}
        />
        <SwitchField
          label={t.single}
          help={t.singleHelp}
          path="graphql.supergraph.disable_query_batching"
          disabled={!may}
          value={draft.get<boolean>('graphql.supergraph.disable_query_batching') ?? false}
          onChange={(on) => draft.set('graphql.supergraph.disable_query_batching', on || undefined)}
        />
      </Card>
    </div>
  );
}

interface Composing {
  made?: Composition;
  failure?: unknown;
  /** What is shown is not of the draft as it stands. */
  waiting: boolean;
}

/** What comes of composing the subgraphs of the draft, when typing pauses. */
function useComposition(members: Member[]): Composing {
  const body = composedBody(members);
  const none = members.length === 0;
  const [state, setState] = useState<Composing & { of?: string }>({ waiting: true });
  useEffect(() => {
    if (none) return;
    const stop = new AbortController();
    const wait = setTimeout(() => {
      request<Composition>('POST', '/api/graphql/compose', { body, signal: stop.signal }).then(
        (made) => setState({ made, waiting: false, of: body }),
        (failure: unknown) => !stop.signal.aborted && setState({ failure, waiting: false, of: body }),
      );
    }, 400);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [body, none]);
  return none ? { waiting: false } : { ...state, waiting: state.of !== body };
}

/** Choices among the GraphQL APIs of the organisation. */
const apisWithout = (id: string | undefined) => ({
  queryKey: ['apis', 'pick', 'graphql', id],
  search: async (q: string, signal: AbortSignal): Promise<Choice[]> => {
    const { rows } = await loadRows({ page: 1, q, sort: 'name', filters: { kind: 'graphql' } }, signal);
    return rows.filter((one) => one.api_id !== id).map((one) => ({ value: one.api_id, label: one.name || one.api_id, note: one.listen_path }));
  },
});

function Adding({ id, members, add }: { id?: string; members: Member[]; add: (member: Member) => void }) {
  const [url, setURL] = useState('');
  const taken = members.map((one) => one.name);
  const names = useRef(new Map<string, string>()); // of the APIs that were found
  const source = apisWithout(id);
  const search = async (q: string, signal: AbortSignal) => {
    const found = await source.search(q, signal);
    for (const one of found) names.current.set(one.value, one.label);
    return found;
  };
  return (
    <section className={css.part} aria-label={t.add}>
      <h3>{t.add}</h3>
      <div className={css.fields}>
        <PickerField label={t.addAPI} help={t.addAPIHelp} queryKey={source.queryKey} search={search} value="" onChange={(api) => api && add({ name: freeName(slugOf(names.current.get(api) ?? api), taken), api_id: api })} />
        <form
          className={css.part}
          onSubmit={(event) => {
            event.preventDefault();
            if (!url.trim()) return;
            add({ name: freeName(slugOf(url), taken), url: url.trim(), sdl: '' });
            setURL('');
          }}
        >
          <TextField label={t.addURL} help={t.addURLHelp} type="url" code placeholder="https://orders.example.com/graphql" value={url} onChange={setURL} />
          <div>
            <Button type="submit" disabled={!url.trim()}>
              {t.addNamed}
            </Button>
          </div>
        </form>
      </div>
    </section>
  );
}

function OneSubgraph(p: { index: number; member: Member; draft: Draft; may: boolean; marks: Mark[]; jump?: Jump }) {
  const { index, member, draft, may } = p;
  const common = (name: string) => ({ path: memberPath(index, name), disabled: !may });
  const put = (name: string, value: unknown) => draft.set(memberPath(index, name), value);
  return (
    <>
      <div className={css.fields}>
        <TextField label={text.name} help={t.nameHelp} {...common('name')} required code value={member.name ?? ''} onChange={(next) => put('name', next)} />
        <PickerField label={t.api} help={t.apiHelp} {...common('api_id')} {...apisWithout(undefined)} value={member.api_id ?? ''} onChange={(next) => put('api_id', next || undefined)} />
        <TextField label={text.url} help={t.urlHelp} {...common('url')} code value={member.url ?? ''} onChange={(next) => put('url', next || undefined)} />
        <SelectField
          label={t.subscriptions}
          {...common('subscription_type')}
          value={member.subscription_type ?? ''}
          options={[{ value: '', label: '–' }, ...['graphql-ws', 'graphql-transport-ws', 'sse'].map((one) => ({ value: one, label: one }))]}
          onChange={(next) => put('subscription_type', next || undefined)}
        />
        {member.subscription_type === 'sse' && <SwitchField label={t.post} {...common('sse_use_post')} value={member.sse_use_post ?? false} onChange={(on) => put('sse_use_post', on || undefined)} />}
      </div>
      <MapField label={text.headers} help={t.headersHelp} {...common('headers')} value={member.headers ?? {}} onChange={(next) => put('headers', Object.keys(next).length > 0 ? next : undefined)} />
      <SubgraphSchema {...p} />
    </>
  );
}

/** The schema that an API has for supergraphs. */
async function federated(id: string, signal: AbortSignal): Promise<string> {
  const { graphql } = await request<components['schemas']['API']>('GET', `/api/apis/${encodeURIComponent(id)}`, { signal });
  return graphql?.subgraph?.sdl?.trim() || graphql?.schema || '';
}

function SubgraphSchema({ index, member, draft, may, marks, jump }: { index: number; member: Member; draft: Draft; may: boolean; marks: Mark[]; jump?: Jump }) {
  const own = member.sdl ?? '';
  const api = member.api_id ?? '';
  const given = useRead(['api', api, 'federated'], (signal) => federated(api, signal), { enabled: api !== '', on: ['revision'] });
  const taken = api !== '' && member.sdl === undefined; // an emptied copy is still being edited
  const value = taken ? (given.data ?? '') : own;
  const [goTo, setGoTo] = useState<number>();
  useEffect(() => {
    setGoTo(undefined); // the same place may be followed to again
    if (!jump || !value) return;
    const next = requestAnimationFrame(() => setGoTo(offsetOfLine(value, jump.line)));
    return () => cancelAnimationFrame(next);
  }, [jump?.n, value === '']);
  const put = (next: string | undefined) => draft.set(memberPath(index, 'sdl'), next);
  const name = member.name || text.unnamed(index + 1);
  return (
    <div className={css.part}>
      <h3>{t.sdl(name)}</h3>
      <div className={css.line}>
        <p className="muted">{taken ? t.ofAPI : api ? t.copied : t.sdlHelp}</p>
        {api && !taken && given.data !== undefined && given.data.trim() !== own.trim() && <Badge kind="warn">{t.behind}</Badge>}
        {api && may && (
          <Button dense onClick={() => put(taken ? given.data : undefined)} disabled={taken && !given.data}>
            {taken ? t.writeOwn : t.takeAgain}
          </Button>
        )}
        {api && <Link to={`/apis/${encodeURIComponent(api)}/schema`}>{t.openAPI}</Link>}
      </div>
      {taken && given.isPending ? (
        <Skeleton lines={6} />
      ) : taken && given.error ? (
        <ErrorPanel failure={given.error} retry={() => void given.refetch()} />
      ) : taken && !value ? (
        <p className={css.wrong}>{t.noSchema}</p>
      ) : (
        <div data-path={memberPath(index, 'sdl')} tabIndex={-1}>
          <CodeEditor label={t.sdl(name)} language="graphql" value={value} onChange={may && !taken ? put : undefined} readOnly={!may || taken} problems={marks} lines={16} goTo={goTo} />
        </div>
      )}
      {marks.length > 0 && (
        <ul className={css.wrong}>
          {marks.slice(0, 20).map((one, n) => (
            <li key={n}>
              {one.line !== undefined && `${one.line}: `}
              {one.message}
            </li>
          ))}
        </ul>
      )}
      {!taken && marks.length === 0 && <ProblemsAt path={memberPath(index, 'sdl')} />}
    </div>
  );
}

function CompositionCard({ draft, members, composed, follow }: { draft: Draft; members: Member[]; composed: Composing; follow: (subgraph: string, line?: number) => void }) {
  const { made, failure, waiting } = composed;
  const stored = draft.get<string>('graphql.supergraph.merged_sdl');
  const problems = made?.problems ?? [];
  return (
    <Card title={t.composition}>
      <div className={css.state} role="status" aria-busy={waiting}>
        {made ? made.valid ? <Badge kind="ok">{t.composes}</Badge> : <Badge kind="danger">{t.fails(problems.length)}</Badge> : !waiting && <Badge>{t.unchecked}</Badge>}
        {waiting && <span className="muted">{t.checking} …</span>}
      </div>
      {failure !== undefined && <ErrorPanel failure={failure} />}
      {problems.length > 0 && (
        <ul className={css.problems} aria-label={t.problems}>
          {problems.slice(0, 200).map((one, n) => (
            <ProblemRow key={n} problem={one} members={members} follow={follow} />
          ))}
        </ul>
      )}
      <Facts
        of={[
          [t.stored, stored ? <>{t.since} <Time at={draft.get<string>('graphql.supergraph.updated_at')} as="full" /></> : t.never],
          [t.effect, !made ? '–' : !made.valid ? t.blocked : made.merged_sdl === stored ? t.same : t.changes],
        ]}
      />
    </Card>
  );
}

function ProblemRow({ problem, members, follow }: { problem: ComposeProblem; members: Member[]; follow: (subgraph: string, line?: number) => void }) {
  const subject = subjectOf(problem);
  return (
    <li>
      <span className={css.line}>
        <code className={css.code}>{problem.code}</code>
        {subject && <code>{subject}</code>}
      </span>
      <span>{sentenceOf(problem)}</span>
      <span className={css.places}>
        {(problem.places ?? []).map((place, n) =>
          members.some((one) => one.name === place.subgraph) ? (
            <Button key={n} dense onClick={() => follow(place.subgraph, place.line)}>
              {t.place(place.subgraph, place.line)}
            </Button>
          ) : (
            <span key={n}>{t.place(place.subgraph, place.line)}</span>
          ),
        )}
      </span>
    </li>
  );
}

/** The schema that clients get, to be read. */
function Merged({ draft, made }: { draft: Draft; made?: Composition }) {
  const [q, setQ] = useState('');
  const [compare, setCompare] = useState(false);
  const stored = draft.get<string>('graphql.supergraph.merged_sdl') ?? '';
  const merged = made?.merged_sdl ?? stored;
  const found = searched(merged, q.trim());
  const differs = made?.valid === true && stored !== '' && merged !== stored;
  return (
    <Card title={t.merged}>
      {made && !made.valid && stored && <p className="muted">{t.mergedStored}</p>}
      {!merged ? (
        <p className="muted">{t.noMerged}</p>
      ) : (
        <>
          <div className={css.row}>
            <TextField label={t.search} type="search" value={q} onChange={setQ} spellCheck={false} />
            {differs && <SwitchField label={t.differences} value={compare} onChange={setCompare} />}
          </div>
          <p className="muted" role="status">
            {t.found(found.found, found.of)}
          </p>
          <CodeEditor label={t.merged} language="graphql" value={compare && differs ? merged : found.sdl} original={compare && differs ? stored : undefined} readOnly lines={20} />
        </>
      )}
    </Card>
  );
}
