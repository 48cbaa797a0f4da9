import { Plus } from 'lucide-react';
import { queryClient, request, useRead } from '../../api';
import { useCan } from '../../app/session';
import { Button } from '../../parts/Button';
import { Card } from '../../parts/Card';
import { SaveBar, useDraft, useSave, type Base, type Draft } from '../../parts/draft';
import { FieldGroup, FieldProblems, SwitchField, TextField, useProblemsAt } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { t } from '../../text/en';
import { MarkdownField } from '../portal/MarkdownField';
import { portal, readBase, type Done } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import { content as text } from './text';

interface PageOf {
  path: string;
  title: string;
  body: string;
  hidden?: boolean;
}

interface ItemOf {
  text: string;
  page?: string;
  url?: string;
}

/** What the organisation writes for its portal: pages in Markdown, and the menu. */
export function Content() {
  return (
    <>
      <Part name="pages" title={text.pages} save={text.savePages} part={Pages} />
      <Part name="menus" title={text.menu} save={text.saveMenu} part={Menu} />
    </>
  );
}

interface PartProps {
  name: 'pages' | 'menus';
  title: string;
  save: string;
  part: (p: { draft: Draft; disabled: boolean }) => React.ReactNode;
}

function Part(p: PartProps) {
  const query = useRead(['portal', p.name], (signal) => readBase(`${portal}/${p.name}`, signal), { keep: true });
  return (
    <Loaded query={query} what={p.title}>
      {(base) => <Form {...p} base={base} />}
    </Loaded>
  );
}

function Form({ base, ...p }: PartProps & { base: Base }) {
  const disabled = !useCan('editor');
  const path = `${portal}/${p.name}`;
  const draft = useDraft({ id: `portal-${p.name}`, base });
  const saving = useSave({
    draft,
    send: ({ text: body, etag }) => request<Done>('PUT', path, { body, headers: etag ? { 'If-Match': etag } : undefined }),
    reload: () => readBase(path),
    done: () => void queryClient.invalidateQueries({ queryKey: ['portal', p.name] }),
  });
  return (
    <FieldProblems problems={saving.problems}>
      <Card title={p.title}>
        <p.part draft={draft} disabled={disabled} />
      </Card>
      <SaveBar draft={draft} saving={saving} verb={p.save} />
    </FieldProblems>
  );
}

function Whole({ path }: { path: string }) {
  const problems = useProblemsAt(path, true).filter((problem) => problem.path === path);
  return problems.map((problem, at) => (
    <p key={at} role="alert" className={portalCSS.problem}>
      {problem.message}
    </p>
  ));
}

function Add({ what, onClick }: { what: string; onClick: () => void }) {
  return (
    <div>
      <Button dense onClick={onClick}>
        <Plus size={14} aria-hidden /> {what}
      </Button>
    </div>
  );
}

function Pages({ draft, disabled }: { draft: Draft; disabled: boolean }) {
  const pages = draft.get<PageOf[]>('pages') ?? [];
  const put = (next: PageOf[]) => draft.set('pages', next);
  return (
    <>
      <p className="muted">{text.pagesHelp}</p>
      {pages.map((page, at) => {
        const change = (part: Partial<PageOf>) => put(pages.with(at, { ...page, ...part }));
        const name = page.title || text.page(at + 1);
        return (
          <FieldGroup key={at} title={name}>
            <div className={portalCSS.columns}>
              <TextField label={text.title} path={`pages[${at}].title`} disabled={disabled} maxLength={120} value={page.title} onChange={(title) => change({ title })} />
              <TextField label={text.path} help={text.pathHelp} path={`pages[${at}].path`} code disabled={disabled} maxLength={64} value={page.path} onChange={(path) => change({ path })} />
            </div>
            <MarkdownField label={text.body} path={`pages[${at}].body`} rows={8} disabled={disabled} preview={text.preview} empty={text.none} value={page.body} onChange={(body) => change({ body })} />
            <SwitchField label={text.hidden} disabled={disabled} value={page.hidden ?? false} onChange={(hidden) => change({ hidden: hidden || undefined })} />
            {!disabled && (
              <div>
                <Button dense onClick={() => put(pages.toSpliced(at, 1))}>
                  {t.form.remove(name)}
                </Button>
              </div>
            )}
          </FieldGroup>
        );
      })}
      <Whole path="pages" />
      {!disabled && pages.length < 100 && <Add what={text.addPage} onClick={() => put([...pages, { path: '', title: '', body: '' }])} />}
    </>
  );
}

function Menu({ draft, disabled }: { draft: Draft; disabled: boolean }) {
  const items = draft.get<ItemOf[]>('items') ?? [];
  const put = (next: ItemOf[]) => draft.set('items', next);
  return (
    <>
      <p className="muted">{text.menuHelp}</p>
      {items.map((item, at) => {
        const change = (to: string) => put(items.with(at, /^[a-z0-9-]+$/.test(to) ? { text: item.text, page: to } : { text: item.text, url: to }));
        return (
          <div key={at} className={portalCSS.pair}>
            <TextField label={text.itemText(at + 1)} path={`items[${at}]`} disabled={disabled} maxLength={80} value={item.text} onChange={(value) => put(items.with(at, { ...item, text: value }))} />
            <TextField label={text.itemTo(at + 1)} path={`items[${at}].page`} disabled={disabled} value={item.page ?? item.url ?? ''} onChange={change} />
            {!disabled && (
              <Button dense onClick={() => put(items.toSpliced(at, 1))}>
                {t.form.remove(item.text || text.item(at + 1))}
              </Button>
            )}
          </div>
        );
      })}
      <Whole path="items" />
      {!disabled && items.length < 12 && <Add what={text.addItem} onClick={() => put([...items, { text: '', page: '' }])} />}
    </>
  );
}
