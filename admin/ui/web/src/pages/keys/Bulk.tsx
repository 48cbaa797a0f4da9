// Verbs for several keys at once.
import { useState } from 'react';
import { queryClient } from '../../api';
import { BulkRun } from '../../parts/BulkRun';
import { setAt } from '../../parts/draft';
import { MomentField, SelectField, TextsField } from '../../parts/fields';
import { PickerListField } from '../../parts/Picker';
import { revokeKey, type KeyRow } from './data';
import { searchPolicies } from './Edit';
import { changeOwn } from './own';
import type { Session } from './session';
import { text } from './text';

export type Verb = keyof typeof text.bulk;

export default function Bulk({ verb, rows, onClose }: { verb: Verb; rows: KeyRow[]; onClose: () => void }) {
  const [policies, setPolicies] = useState<string[]>([]);
  const [how, setHow] = useState('add');
  const [ends, setEnds] = useState<number>();
  const [labels, setLabels] = useState<string[]>(['']);
  const [now] = useState(() => Date.now() / 1000);
  const given = [...new Set(labels.map((one) => one.trim()).filter(Boolean))];
  const edits: Record<Exclude<Verb, 'revoke'>, (session: string) => string> = {
    activate: (session) => setAt(session, ['is_inactive'], undefined),
    deactivate: (session) => {
      if (policiesOf(session).length > 0) throw new Error(text.policiesDecide);
      return setAt(session, ['is_inactive'], true);
    },
    policies: (session) => {
      const have = policiesOf(session);
      const next = how === 'add' ? [...have, ...policies.filter((id) => !have.includes(id))] : how === 'remove' ? have.filter((id) => !policies.includes(id)) : policies;
      return next.join() === have.join() ? session : setAt(setAt(session, ['apply_policy_id'], undefined), ['apply_policies'], next);
    },
    extend: (session) => (endOf(session) === (ends ?? 0) ? session : setAt(session, ['expires'], ends ?? 0)),
    labels: (session) => {
      const have = (JSON.parse(session) as Session).tags ?? [];
      return given.every((one) => have.includes(one)) ? session : setAt(session, ['tags'], [...new Set([...have, ...given])]);
    },
  };
  const past = ends !== undefined && ends < now;
  const ready = { activate: true, deactivate: true, revoke: true, policies: policies.length > 0, extend: !past, labels: given.length > 0 }[verb];
  return (
    <BulkRun
      title={text.bulkTitle(text.bulk[verb], rows.length)}
      verb={text.bulk[verb].replace('…', '')}
      danger={verb === 'revoke' || verb === 'deactivate'}
      word={verb === 'revoke' ? text.revokeWord : undefined}
      rows={rows}
      name={(row) => row.alias || text.unnamed(row.key_hash)}
      ready={ready}
      run={(row) => (verb === 'revoke' ? revokeKey(row.key_hash) : changeOwn(row.key_hash, edits[verb]))}
      onClose={(changed) => {
        onClose();
        if (changed) void queryClient.invalidateQueries({ queryKey: ['keys'] });
      }}
    >
      {verb === 'revoke' && <p>{text.revokeText}</p>}
      {verb === 'deactivate' && <p>{text.deactivateText}</p>}
      {verb === 'activate' && <p>{text.activateText}</p>}
      {verb === 'policies' && (
        <>
          <SelectField label={text.how} value={how} onChange={setHow} options={text.hows} />
          <PickerListField label={text.policies} help={text.policiesText} queryKey={['policies', 'choice']} search={searchPolicies} value={policies} onChange={setPolicies} />
        </>
      )}
      {verb === 'extend' && <MomentField label={text.expires} help={past ? text.past : text.endsHelp} value={ends} onChange={setEnds} />}
      {verb === 'labels' && <TextsField label={text.labelsToAdd} help={text.labelsHelp} value={labels} onChange={setLabels} />}
    </BulkRun>
  );
}

const endOf = (session: string) => Math.max(0, (JSON.parse(session) as Session).expires ?? 0);

/** The policies of a session, also in their older form. */
function policiesOf(session: string): string[] {
  const { apply_policies: several, apply_policy_id: one } = JSON.parse(session) as Session;
  return several?.length ? several : one ? [one] : [];
}
