import { useNavigate, useParams } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { queryClient, request, respond, useRead } from '../../api';
import { useCan } from '../../app/session';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { CodeEditor } from '../../parts/code';
import { Confirm } from '../../parts/Confirm';
import { DraftOffer, SaveBar, useDraft, useSave, type Base } from '../../parts/draft';
import { FieldProblems, SelectField, TextField } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { Markdown } from '../../parts/Markdown';
import { Needs } from '../../parts/Needs';
import { Opened } from '../../parts/Opened';
import { Page } from '../../parts/Page';
import { PickerField } from '../../parts/Picker';
import { toast } from '../../parts/toasts';
import { one, portal, searchAPIs, type Document, type Done } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { text } from './text';

type Edited = Pick<Document, 'name' | 'api_id' | 'doc_type' | 'documentation'>;

const fromBase64 = (coded: string) => new TextDecoder().decode(Uint8Array.from(atob(coded), (c) => c.charCodeAt(0)));

function toBase64(plain: string): string {
  const bytes = new TextEncoder().encode(plain);
  let binary = '';
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

/** The document with its text in clear, which is what is edited. */
async function read(id: string, signal?: AbortSignal): Promise<Base> {
  const answer = await respond('GET', one('documentation', id), { signal });
  const { name, api_id, doc_type, documentation } = (await answer.json()) as Document;
  return { text: JSON.stringify({ name, api_id, doc_type, documentation: fromBase64(documentation) } satisfies Edited, null, 2), etag: answer.headers.get('ETag') ?? '' };
}

/** What is sent for the text of a draft. */
function bodyOf(draft: string): Edited {
  const edited = JSON.parse(draft) as Edited;
  return { ...edited, documentation: toBase64(edited.documentation) };
}

export function NewDocument() {
  return <Editing base={{ text: JSON.stringify({ name: '', api_id: '', doc_type: 'openapi', documentation: '' } satisfies Edited, null, 2), etag: '' }} />;
}

export function DocumentPage() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const query = useRead(['documents', 'one', id], (signal) => read(id, signal), { keep: true });
  return (
    <Opened query={query} title={text.what}>
      {(base) => <Editing key={id} id={id} base={base} />}
    </Opened>
  );
}

function Editing({ id, base }: { id?: string; base: Base }) {
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const made = useRef(id ?? '');
  const may = useCan('editor');
  const draft = useDraft({ id: `document:${id ?? 'new'}`, base });
  const saving = useSave({
    draft,
    send: async (it) => {
      if (id) return request<Done>('PUT', one('documentation', id), { body: bodyOf(it.text), headers: { 'If-Match': it.etag } });
      const { Message } = await request<Done>('POST', `${portal}/documentation`, { body: bodyOf(it.text), once: true });
      made.current = Message;
    },
    reload: () => read(made.current),
    done: () => {
      void queryClient.invalidateQueries({ queryKey: ['documents'] });
      if (!id) void navigate({ to: `/documents/${encodeURIComponent(made.current)}`, replace: true });
    },
  });
  const get = (name: keyof Edited) => draft.get<string>(name) ?? '';
  const kind = get('doc_type');
  const source = get('documentation');
  const openFile = (file: File | undefined) => {
    if (!file) return;
    void file.text().then((content) => {
      draft.set('documentation', content);
      if (!get('name')) draft.set('name', file.name.replace(/\.\w+$/, ''));
      if (/\.(md|markdown)$/i.test(file.name)) draft.set('doc_type', 'markdown');
      else if (/\.(graphqls?|gql|sdl)$/i.test(file.name)) draft.set('doc_type', 'graphql');
      else if (/\.(json|ya?ml)$/i.test(file.name)) draft.set('doc_type', 'openapi');
    });
  };
  const marks = saving.problems.filter((problem) => problem.path.startsWith('documentation'));
  return (
    <Page
      title={get('name') || text.untitled}
      actions={
        id && (
          <Needs role="editor" say>
            <Button kind="danger" onClick={() => setRemoving(true)}>
              {text.remove}
            </Button>
          </Needs>
        )
      }
    >
      <FieldProblems problems={saving.problems}>
        <DraftOffer draft={draft} />
        <div className={portalCSS.columns}>
          <TextField label={text.name} path="name" disabled={!may} value={get('name')} onChange={(value) => draft.set('name', value)} />
          <SelectField label={text.kind} path="doc_type" disabled={!may} value={kind} onChange={(value) => draft.set('doc_type', value)} options={Object.entries(text.filters.kinds).map(([value, label]) => ({ value, label }))} />
          <PickerField label={text.api} help={text.apiHelp} path="api_id" disabled={!may} queryKey={['apis', 'pick']} search={searchAPIs} value={get('api_id')} onChange={(value) => draft.set('api_id', value)} />
        </div>
        <Card
          title={text.source}
          actions={
            may && (
              <label className={portalCSS.file}>
                {text.file} <input type="file" onChange={(event) => openFile(event.target.files?.[0])} />
              </label>
            )
          }
        >
          <p className="muted">{text.sourceHelp}</p>
          <CodeEditor
            label={text.source}
            lines={24}
            language={kind === 'graphql' ? 'graphql' : kind === 'markdown' ? 'text' : source.trimStart().startsWith('{') ? 'json' : 'yaml'}
            readOnly={!may}
            value={source}
            onChange={(value) => draft.set('documentation', value)}
            problems={marks}
          />
          {marks.map((problem, at) => (
            <p key={at} className={portalCSS.problem}>
              {problem.message}
            </p>
          ))}
        </Card>
        {kind === 'markdown' ? (
          <Card title={text.preview}>{source.trim() ? <Markdown text={source} /> : <p className="muted">{text.previewEmpty}</p>}</Card>
        ) : (
          id && <Preview key={draft.base.etag} id={id} kind={kind} />
        )}
        <SaveBar draft={draft} saving={saving} verb={id ? undefined : text.createVerb} />
      </FieldProblems>
      {removing && id && (
        <Confirm
          title={text.removeTitle(get('name'))}
          verb={text.removeVerb}
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await request('DELETE', one('documentation', id), { headers: { 'If-Match': draft.base.etag } });
            toast({ kind: 'ok', text: text.removed(get('name')) });
            await navigate({ to: '/documents' });
            void queryClient.invalidateQueries({ queryKey: ['documents', 'list'] });
          }}
        >
          <p>{text.removeHelp}</p>
        </Confirm>
      )}
    </Page>
  );
}

/** The saved version as the server cleaned it. */
function Preview({ id, kind }: { id: string; kind: string }) {
  const [open, setOpen] = useState(false);
  const query = useRead(['documents', 'preview', id], (signal) => request<{ schema?: string; openapi?: unknown }>('GET', `${one('documentation', id)}/preview`, { signal }), { enabled: open, staleTime: 0 });
  return (
    <Card title={text.preview} actions={<span className="muted">{text.previewSaved}</span>}>
      {open ? (
        <Loaded query={query} what={text.preview}>
          {(shown) => <CodeEditor label={text.preview} readOnly lines={20} language={kind === 'graphql' ? 'graphql' : 'json'} value={shown.schema ?? JSON.stringify(shown.openapi, null, 2)} />}
        </Loaded>
      ) : (
        <div>
          <Button onClick={() => setOpen(true)}>{text.previewOpen}</Button>
        </div>
      )}
    </Card>
  );
}
