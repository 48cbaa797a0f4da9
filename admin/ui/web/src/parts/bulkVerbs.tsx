// The verbs that lists of configuration share: Enable, Disable, Labels…, Export, Delete….
import { useState, type ReactNode } from 'react';
import type { components } from '../api.gen';
import { queryClient } from '../api';
import { useCan } from '../app/session';
import { t } from '../text/en';
import { BulkChange, exportObjects, type BulkChangeProps } from './BulkChange';
import { setAt } from './draft';
import { TextsField } from './fields';
import type { BulkAction } from './ListPage';

type Verb = 'enable' | 'disable' | 'labels' | 'delete';

/** The bulk actions of a list, and the dialog that is open. */
export function useBulkVerbs<R>(o: {
  kind: BulkChangeProps['kind'];
  chosen: (row: R) => { id: string; name: string };
  load: BulkChangeProps['load'];
  effect: (effect: components['schemas']['Effect']) => ReactNode;
  /** What labels do to these objects. */
  labelsNote?: string;
}): { bulk: BulkAction<R>[]; dialog: ReactNode } {
  const may = useCan('editor');
  const [open, setOpen] = useState<{ verb: Verb; rows: R[] }>();
  const [labels, setLabels] = useState<string[]>(['']);
  const opens = (verb: Verb, danger?: boolean): BulkAction<R> => ({ label: t.bulk[verb], danger, run: () => Promise.resolve(), open: (rows) => setOpen({ verb, rows }) });
  const saves: BulkAction<R> = { label: t.bulk.export, run: () => Promise.resolve(), open: (rows) => void exportObjects(o.kind, rows.map(o.chosen), o.load) };
  if (!may) return { bulk: [], dialog: null };
  const bulk = [opens('enable'), opens('disable', true), opens('labels'), saves, opens('delete', true)];
  if (!open) return { bulk, dialog: null };
  const given = [...new Set(labels.map((one) => one.trim()).filter(Boolean))];
  const edits: Record<Verb, ((text: string) => string) | undefined> = {
    // A policy can be out of use by any of three members.
    enable: (text) => setAt(['is_inactive', 'state'].reduce((now, member) => (o.kind === 'policies' ? setAt(now, [member], undefined) : now), text), ['active'], true),
    disable: (text) => setAt(text, ['active'], false),
    labels: (text) => setAt(text, ['tags'], [...new Set([...((JSON.parse(text) as { tags?: string[] | null }).tags ?? []), ...given])]),
    delete: undefined,
  };
  const count = open.rows.length;
  const verb = t.bulk[open.verb].replace('…', '');
  const close = () => setOpen(undefined);
  const dialog = (
    <BulkChange
      kind={o.kind}
      rows={open.rows.map(o.chosen)}
      title={`${verb}: ${t.bulk[o.kind](count)}`}
      verb={verb}
      danger={open.verb === 'disable' || open.verb === 'delete'}
      name={open.verb === 'delete' ? t.bulk.deleteWord : undefined}
      load={o.load}
      edit={edits[open.verb]}
      effect={o.effect}
      ready={open.verb !== 'labels' || given.length > 0}
      onClose={close}
      onDone={() => {
        close();
        void queryClient.invalidateQueries({ queryKey: [o.kind] });
      }}
    >
      {open.verb === 'labels' && <TextsField label={t.bulk.labelsTitle} help={o.labelsNote} value={labels} onChange={setLabels} />}
    </BulkChange>
  );
  return { bulk, dialog };
}
