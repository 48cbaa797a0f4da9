// A new API: by probing a URL, from an OpenAPI document, or from text.
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useState } from 'react';
import { queryClient, useWrite } from '../../api/query';
import { Failure } from '../../api/failure';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { CodeEditor } from '../../parts/code';
import { DraftBar, DraftOffer, ReviewSheet, setAt, useDraft, type Draft, type Publishing } from '../../parts/draft';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, SelectField, TextAreaField, TextField } from '../../parts/fields';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { Skeleton } from '../../parts/Skeleton';
import { useURLState } from '../../parts/urlState';
import { baseOf, readDocument, slugOf, withAuth } from './begin';
import { Effect } from './Effect';
import { batchOf, create, loadEffect, probe, validate } from './read';
import { SchemaText } from './Schema';
import { AddStream, StreamEditor } from './streams/Edit';
import { problemsOf, streamPath } from './streams/graph';
import { text as t } from './text';
import css from './apis.module.css';

const Supergraph = lazy(() => import('./graphs/Supergraph'));
const Sources = lazy(() => import('./graphs/Sources'));

/** The ways to begin that have no upstream, with the execution modes of what they make. */
const modes: Record<string, string | undefined> = { supergraph: 'supergraph', graph: 'executionEngine' };

const empty = `{
  "name": "",
  "proxy": {
    "listen_path": "",
    "target_url": "",
    "strip_listen_path": true
  }
}
`;

export function NewAPI() {
  return (
    <Page title={t.wizard.title}>
      <Needs role="editor" say>
        <Wizard />
      </Needs>
    </Page>
  );
}

function Wizard() {
  const [url, setURL] = useURLState();
  const way = url.from ?? 'url';
  const draft = useDraft({ id: 'api:new', base: { text: empty, etag: '' }, validate: (text, signal) => (text === empty ? Promise.resolve([]) : validate(text, signal)) });
  const [reviewing, setReviewing] = useState(false);
  const navigate = useNavigate();
  const name = draft.get<string>('name') || t.create;
  const take = (found: Record<string, unknown>) => draft.setText(Object.entries(found).reduce((text, [path, value]) => (value === undefined ? text : setAt(text, path.split('.'), value)), draft.broken ? empty : draft.text));
  const begin = (next: string) => {
    if (modes[way] && !modes[next] && next !== 'text') draft.set('graphql', undefined);
    setURL({ from: next === 'url' ? '' : next, open: undefined });
  };
  return (
    <FieldProblems problems={draft.problems}>
      <div className={css.stack}>
        <DraftOffer draft={draft} />
        <Card title={t.wizard.from}>
          <div className="row" role="group" aria-label={t.wizard.from}>
            {Object.entries(t.wizard.ways).map(([id, label]) => (
              <Button key={id} aria-pressed={way === id} kind={way === id ? 'primary' : 'plain'} onClick={() => begin(id)}>
                {label}
              </Button>
            ))}
          </div>
          {way === 'url' && <FromURL take={take} />}
          {way === 'openapi' && <FromDocument take={take} />}
          {way === 'streams' && <FromStreams draft={draft} take={take} />}
          {modes[way] && <p className="muted">{t.wizard[way as 'graph']}</p>}
          {way === 'text' && (
            <>
              <p className="muted">{t.wizard.paste}</p>
              <CodeEditor label={t.wizard.definition} language="json" value={draft.text} onChange={draft.setText} problems={draft.problems} lines={20} />
            </>
          )}
        </Card>
        {draft.problems.length > 0 && draft.changed && (
          <ul>
            {draft.problems.slice(0, 20).map((one, n) => (
              <li key={n}>
                {one.line ? `Line ${one.line}: ` : ''}
                {one.path && <code>{one.path}</code>} {one.message}
              </li>
            ))}
          </ul>
        )}
        {way !== 'text' && (
          <Card title={t.wizard.definition}>
            <div className={css.fields}>
              <TextField label={t.wizard.name} path="name" required value={draft.get<string>('name') ?? ''} onChange={(next) => draft.set('name', next)} />
              <TextField label={t.wizard.path} path="proxy.listen_path" required code value={draft.get<string>('proxy.listen_path') ?? ''} onChange={(next) => draft.set('proxy.listen_path', next)} />
              {way !== 'streams' && !modes[way] && (
                <TextField label={t.fact.upstream} path="proxy.target_url" required code value={draft.get<string>('proxy.target_url') ?? ''} onChange={(next) => draft.set('proxy.target_url', next)} />
              )}
              <SelectField
                label={t.wizard.auth}
                path="use_keyless"
                value={draft.get('use_keyless') ? 'keyless' : draft.get('use_basic_auth') ? 'basic' : 'token'}
                options={[
                  { value: 'token', label: t.auths.token! },
                  { value: 'basic', label: t.auths.basic! },
                  { value: 'keyless', label: t.auths.keyless! },
                ]}
                onChange={(next) => draft.setText(withAuth(draft.text, next))}
              />
            </div>
          </Card>
        )}
        {modes[way] && <FromGraph key={way} mode={modes[way]} draft={draft} />}
        <DraftBar draft={draft} onReview={() => setReviewing(true)} within="/apis/new" />
        {reviewing && (
          <ReviewSheet
            what={t.what(name)}
            draft={draft}
            effect={async (text, signal) => <Effect effect={await loadEffect(text, signal)} />}
            batch={batchOf}
            publish={async (it: Publishing) => {
              const made = await create(it);
              await queryClient.invalidateQueries({ queryKey: ['apis'] });
              draft.discard();
              setTimeout(() => void navigate({ to: `/apis/${encodeURIComponent(made.id)}` }));
              return made;
            }}
            reload={() => Promise.reject(new Failure(409, 'Another API has this path or id: change it.', 'POST', '/api/apis'))}
            onDone={() => setReviewing(false)}
            onClose={() => setReviewing(false)}
          />
        )}
      </div>
    </FieldProblems>
  );
}

/** Begins with streams of templates, which are edited as text. */
function FromStreams({ draft, take }: { draft: Draft; take: (found: Record<string, unknown>) => void }) {
  const names = Object.keys(draft.get<object>(['x-svc-streaming', 'streams']) ?? {});
  return (
    <>
      <p className="muted">{t.wizard.streams}</p>
      <AddStream
        names={names}
        onAdd={(name, stream) => {
          if (names.length === 0) take({ name: draft.get('name') || name, 'proxy.listen_path': draft.get('proxy.listen_path') || `/${slugOf(name)}/`, 'x-svc-streaming': { streams: { [name]: stream } } });
          else draft.set(streamPath(name), stream);
        }}
      />
      {names.map((name) => (
        <section key={name} className={css.stack} aria-label={name}>
          <h3>{name}</h3>
          <StreamEditor name={name} draft={draft} may problems={problemsOf(draft.problems, name)} />
        </section>
      ))}
    </>
  );
}

/** Begins with subgraphs, or with a schema and data sources. */
function FromGraph({ mode, draft }: { mode: string; draft: Draft }) {
  const now = draft.get('graphql.execution_mode');
  useEffect(() => {
    if (now !== mode) draft.set('graphql', { enabled: true, execution_mode: mode });
  }, [mode]);
  return (
    <Suspense fallback={<Skeleton lines={12} />}>
      {mode === 'supergraph' ? (
        <Supergraph draft={draft} may />
      ) : (
        <>
          <SchemaText draft={draft} may />
          <Sources draft={draft} may />
        </>
      )}
    </Suspense>
  );
}

/** Asks what answers at a URL, and takes over what is known of it. */
function FromURL({ take }: { take: (found: Record<string, unknown>) => void }) {
  const [url, setURL] = useState('');
  const [said, setSaid] = useState('');
  const asking = useWrite(probe, {
    done: (found, asked) => {
      const document = found.document ? readDocument(found.document, asked) : undefined;
      const target = document?.target ?? asked;
      const name = found.name || document?.name || slugOf(target);
      take({
        name,
        'proxy.target_url': target,
        'proxy.listen_path': `/${slugOf(found.name || document?.name || target)}/`,
        graphql: found.kind === 'graphql' ? { enabled: true, execution_mode: 'proxyOnly', schema: found.schema ?? '' } : undefined,
      });
      setSaid([found.kind === 'plain' ? t.wizard.found.plain(found.status) : t.wizard.found[found.kind], found.error].filter(Boolean).join(' '));
    },
  });
  const valid = baseOf(url) !== undefined;
  return (
    <form
      className={css.narrow}
      onSubmit={(event) => {
        event.preventDefault();
        if (valid) asking.mutate(url.trim());
      }}
    >
      <div className={css.entry}>
        <TextField label={t.wizard.url} type="url" code autoFocus placeholder="https://orders.example.com/" value={url} onChange={setURL} />
        <Button type="submit" kind="primary" busy={asking.isPending} disabled={!valid}>
          {asking.isPending ? t.wizard.probing : t.wizard.probe}
        </Button>
      </div>
      <p role="status" className={said ? undefined : 'muted'}>
        {said || t.wizard.urlHelp}
      </p>
      {asking.error && <ErrorPanel failure={asking.error} />}
    </form>
  );
}

/** Takes over the title and the server of an OpenAPI document. */
function FromDocument({ take }: { take: (found: Record<string, unknown>) => void }) {
  const [document, setDocument] = useState('');
  const [said, setSaid] = useState('');
  const read = (text: string) => {
    setDocument(text);
    setSaid('');
  };
  const run = () => {
    const found = readDocument(document);
    if (!found) {
      setSaid('This is no OpenAPI document in JSON or YAML: it has no line with "openapi" or "swagger".');
      return;
    }
    take({ name: found.name || undefined, 'proxy.target_url': found.target, 'proxy.listen_path': `/${slugOf(found.name || found.target || 'api')}/` });
    setSaid(found.target ? '' : t.wizard.noServer);
  };
  return (
    <div className={css.narrow}>
      <TextAreaField label={t.wizard.document} help={t.wizard.documentHelp} code rows={12} value={document} onChange={read} />
      <div className="row">
        <Button kind="primary" disabled={!document.trim()} onClick={run}>
          {t.wizard.take}
        </Button>
        <label>
          {t.wizard.file}{' '}
          <input type="file" accept=".json,.yaml,.yml" onChange={(event) => void event.target.files?.[0]?.text().then(read)} />
        </label>
      </div>
      <p role="status">{said}</p>
    </div>
  );
}
