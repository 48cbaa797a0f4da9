// The members of a policy as fields; each edits one member of the draft.
import { Card } from '../../parts/Card';
import type { Draft, Path } from '../../parts/draft';
import { NumberField, SelectField, SwitchField, TextField, TextsField } from '../../parts/fields';
import { accessPath } from './paths';
import css from './policies.module.css';
import { text as t } from './text';

const often = ['rate', 'per', 'quota_max', 'quota_renewal_rate', 'max_query_depth', 'throttle_interval', 'throttle_retry_limit'];
const seldom = ['max_query_aliases', 'max_query_root_fields', 'max_query_directives', 'max_query_tokens', 'max_query_cost'];

interface Part {
  draft: Draft;
  disabled: boolean;
}

/** Limits of the policy, or with an API those that it has for that one. */
export function LimitFields({ draft, disabled, api }: Part & { api?: string }) {
  const at = (member: string): Path => (api === undefined ? [member] : ['access_rights', api, 'limit', member]);
  const path = (member: string) => (api === undefined ? member : `${accessPath(api)}.limit.${member}`);
  const numbers = (members: string[]) =>
    members.map((member) => {
      const of = t.limits[member]!;
      return <NumberField key={member} label={of.label} help={of.help} unit={of.unit} path={path(member)} step="any" disabled={disabled} value={draft.get<number>(at(member))} onChange={(next) => draft.set(at(member), next)} />;
    });
  const used = seldom.some((member) => draft.get(at(member)));
  return (
    <>
      <div className={css.fields}>
        {numbers(often)}
        <SelectField label={t.calendar} help={t.calendarHelp} path={path('quota_renewal_calendar')} disabled={disabled} value={draft.get<string>(at('quota_renewal_calendar')) ?? ''} options={t.calendars} onChange={(next) => draft.set(at('quota_renewal_calendar'), next || undefined)} />
        {(draft.get(at('quota_renewal_calendar')) || draft.get(at('quota_renewal_zone'))) !== undefined && (
          <TextField label={t.zone} help={t.zoneHelp} path={path('quota_renewal_zone')} disabled={disabled} value={draft.get<string>(at('quota_renewal_zone')) ?? ''} onChange={(next) => draft.set(at('quota_renewal_zone'), next || undefined)} />
        )}
      </div>
      <details className={css.more} open={used || undefined}>
        <summary>{t.moreLimits}</summary>
        <div className={css.fields}>{numbers(seldom)}</div>
      </details>
    </>
  );
}

function NameFields({ draft, disabled, fresh }: Part & { fresh?: boolean }) {
  return (
    <Card title={t.nameCard}>
      <div className={css.fields}>
        <TextField label={t.name} path="name" required={fresh} disabled={disabled} value={draft.get<string>('name') ?? ''} onChange={(next) => draft.set('name', next)} />
        {fresh && <TextField label={t.id} help={t.idHelp} path="id" code value={draft.get<string>('id') ?? ''} onChange={(next) => draft.set('id', next || undefined)} />}
        <SelectField label={t.state} help={t.stateHelp} path="state" disabled={disabled} value={draft.get<string>('state') || 'active'} options={t.stateOptions} onChange={(next) => draft.set('state', next === 'active' ? undefined : next)} />
        <SelectField
          label={t.enforcement}
          help={t.enforcementHelp}
          path="enforcement"
          disabled={disabled}
          value={draft.get<string>('enforcement') || 'enforce'}
          options={t.enforcements}
          onChange={(next) => draft.set('enforcement', next === 'enforce' ? undefined : next)}
        />
        <SwitchField label={t.active} help={t.activeHelp} path="active" disabled={disabled} value={draft.get<boolean>('active') ?? true} onChange={(on) => draft.set('active', on ? undefined : false)} />
        {draft.get('is_inactive') !== undefined && (
          <SwitchField label={t.inactive} help={t.inactiveHelp} path="is_inactive" disabled={disabled} value={draft.get<boolean>('is_inactive') ?? false} onChange={(on) => draft.set('is_inactive', on)} />
        )}
        <NumberField label={t.expires} help={t.expiresHelp} unit={t.secondsUnit} path="key_expires_in" disabled={disabled} value={draft.get<number>('key_expires_in')} onChange={(next) => draft.set('key_expires_in', next)} />
        <TextsField label={t.tags} path="tags" disabled={disabled} value={draft.get<string[]>('tags') ?? []} onChange={(next) => draft.set('tags', next.length > 0 ? next : undefined)} />
      </div>
    </Card>
  );
}

/** Name, state, limits and parts. */
export function PolicyFields({ draft, disabled, fresh }: Part & { fresh?: boolean }) {
  return (
    <>
      <NameFields draft={draft} disabled={disabled} fresh={fresh} />
      <Card title={t.limitsCard}>
        <LimitFields draft={draft} disabled={disabled} />
      </Card>
      <Card title={t.partitionsCard}>
        <p className="muted">{t.partitionsHelp}</p>
        <div className={css.fields}>
          {Object.entries(t.partitions).map(([member, label]) => (
            <SwitchField
              key={member}
              label={label}
              path={`partitions.${member}`}
              disabled={disabled}
              value={draft.get<boolean>(['partitions', member]) ?? false}
              onChange={(on) => draft.set(['partitions', member], on)}
            />
          ))}
        </div>
      </Card>
    </>
  );
}
