// What may be changed of a key: a draft of its stored session. It is no configuration, and
// takes effect without a revision.
import { useState } from 'react';
import { queryClient, useRead } from '../../api';
import { useCan } from '../../app/session';
import { Card } from '../../parts/Card';
import { CodeEditor } from '../../parts/code';
import { DraftOffer, SaveBar, useDraft, useSave, type Base } from '../../parts/draft';
import { FieldProblems, MomentField, SwitchField, TextField, TextsField } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { PickerListField } from '../../parts/Picker';
import { AccessTab } from '../policies/Access';
import { LimitFields } from '../policies/Form';
import { findPolicies } from './data';
import { Effective } from './Effective';
import css from './keys.module.css';
import { loadOwn, previewOwn, saveOwn } from './own';
import type { Session } from './session';
import { text } from './text';

export default function Edit({ hash }: { hash: string }) {
  const base = useRead(['keys', hash, 'own'], (signal) => loadOwn(hash, signal), { on: ['generation'] });
  return <Loaded query={base}>{(data) => <Editing key={hash} hash={hash} base={data} />}</Loaded>;
}

export const searchPolicies = async (q: string, signal: AbortSignal) => (await findPolicies(q, signal)).rows.map((row) => ({ value: row.id, label: row.name || row.id, note: row.name && row.name !== row.id ? row.id : undefined }));

function Editing({ hash, base }: { hash: string; base: Base }) {
  const may = useCan('editor');
  const [effective, setEffective] = useState<Session>();
  const before = (JSON.parse(base.text) as Session).expires;
  const draft = useDraft({
    id: `key:${hash}`,
    base,
    validate: may
      ? async (now, signal) => {
          setEffective(await previewOwn(now, signal));
          const { expires } = JSON.parse(now) as Session;
          // The server keeps the former end in place of one that is over.
          return expires && expires > 0 && expires !== before && expires * 1000 < Date.now() ? [{ path: 'expires', message: text.past }] : [];
        }
      : undefined,
  });
  const saving = useSave({ draft, send: (it) => saveOwn(hash, it), reload: () => loadOwn(hash), done: () => void queryClient.invalidateQueries({ queryKey: ['keys'] }) });
  const policies = draft.get<string[]>('apply_policies') ?? [];
  const expires = draft.get<number>('expires');
  const problems = !draft.changed ? [] : draft.problems.length > 0 ? draft.problems : saving.problems;
  return (
    <FieldProblems problems={problems}>
      <DraftOffer draft={draft} />
      <Card title={text.nameCard}>
        <div className={css.fields}>
          <TextField label={text.alias} help={text.aliasHelp} path="alias" disabled={!may} maxLength={1024} autoComplete="off" value={draft.get<string>('alias') ?? ''} onChange={(next) => draft.set('alias', next || undefined)} />
          <MomentField label={text.expires} help={text.endsHelp} path="expires" disabled={!may} value={expires && expires > 0 ? expires : undefined} onChange={(next) => draft.set('expires', next ?? 0)} />
          <TextsField label={text.labels} help={text.labelsHelp} path="tags" disabled={!may} value={draft.get<string[]>('tags') ?? []} onChange={(next) => draft.set('tags', next.length > 0 ? next : undefined)} />
          <SwitchField label={text.inUse} help={policies.length > 0 ? text.policiesDecide : text.inUseHelp} path="is_inactive" disabled={!may || policies.length > 0} value={!draft.get<boolean>('is_inactive')} onChange={(on) => draft.set('is_inactive', on ? undefined : true)} />
        </div>
      </Card>
      <Card title={text.policies}>
        <PickerListField label={text.policies} help={text.policiesText} path="apply_policies" disabled={!may} queryKey={['policies', 'choice']} search={searchPolicies} value={policies} onChange={(next) => draft.set('apply_policies', next.length > 0 ? next : undefined)} />
        {policies.length > 0 && effective && <Effective session={effective} />}
      </Card>
      <Card title={text.ownLimits}>
        <p className="muted">{policies.length > 0 ? text.limitsReplaced : text.limitsHelp}</p>
        <LimitFields draft={draft} disabled={!may} />
      </Card>
      <h2>{text.access}</h2>
      <p className="muted">{policies.length > 0 ? text.apisNot : text.accessHelp}</p>
      <AccessTab draft={draft} may={may} none="" />
      <All draft={draft} may={may} />
      {may && <SaveBar draft={draft} saving={saving} />}
    </FieldProblems>
  );
}

/** The whole session as text; the editor is loaded when it is unfolded. */
function All({ draft, may }: { draft: ReturnType<typeof useDraft>; may: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.all} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{text.allMembers}</summary>
      <p className="muted">{text.allHelp}</p>
      {open && <CodeEditor label={text.allMembers} language="json" value={draft.text} onChange={may ? draft.setText : undefined} readOnly={!may} problems={draft.problems} lines={24} />}
    </details>
  );
}
