// Runs recorded requests against the draft of a policy, before it is reviewed.
import { Card } from '../../parts/Card';
import { Recorded, ReplayRun, useSamples, type Draft } from '../../parts/draft';
import { SelectField } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { Needs } from '../../parts/Needs';
import { useURLState } from '../../parts/urlState';
import { t as common } from '../../text/en';
import css from './policies.module.css';
import { batchOf } from './read';
import { text as t } from './text';

export function ReplayTab({ id, draft }: { id: string; draft: Draft }) {
  const samples = useSamples();
  return (
    <Card title={t.tabs.replay}>
      <p className="muted">{t.replay.help}</p>
      <Needs role="editor" say>
        <Loaded query={samples} lines={4}>
          {(all) => (all.samples === 0 ? <p>{common.replay.none}</p> : <Choose id={id} draft={draft} apis={all.apis ?? []} all={all} />)}
        </Loaded>
      </Needs>
    </Card>
  );
}

interface Sampled {
  api_id: string;
  samples: number;
  first_at: string;
  last_at: string;
}

function Choose({ id, draft, apis, all }: { id: string; draft: Draft; apis: Sampled[]; all: { samples: number; first_at?: string; last_at?: string } }) {
  const [url, setURL] = useURLState();
  const named = Object.keys(draft.get<Record<string, unknown>>('access_rights') ?? {});
  const callers = url.callers === 'own' || url.callers === 'all' ? url.callers : draft.changed ? 'own' : 'all';
  // A policy that all callers have alone says nothing about APIs that it does not name.
  const offered = apis.filter((one) => callers === 'own' || named.includes(one.api_id));
  const api = offered.find((one) => one.api_id === url.api);
  const same = callers === 'own' && !draft.changed;
  const query = () => ({
    api: api?.api_id,
    since: url.since ? new Date(Date.now() - Number(url.since) * 1000).toISOString() : undefined,
    as_policy: callers === 'all' ? id : undefined,
  });
  return (
    <div className={css.stack}>
      <Recorded of={api ?? all} />
      <div className={css.fields}>
        <SelectField
          label={t.replay.callers}
          help={t.replay.callersHelp}
          value={callers}
          onChange={(next) => setURL({ callers: next })}
          options={[
            { value: 'own', label: t.replay.own },
            { value: 'all', label: t.replay.all(t.what(draft.get<string>('name') || id)) },
          ]}
        />
        <SelectField
          label={t.replay.api}
          value={api?.api_id ?? ''}
          onChange={(next) => setURL({ api: next })}
          options={[{ value: '', label: callers === 'own' ? t.replay.anyAPI : t.replay.anyNamed }, ...offered.map((one) => ({ value: one.api_id, label: t.replay.counted(one.api_id, one.samples) }))]}
        />
        <SelectField label={t.replay.since} value={url.since ?? ''} onChange={(next) => setURL({ since: next })} options={t.replay.spans} />
      </div>
      {same && <p>{t.replay.same}</p>}
      {offered.length === 0 ? <p>{t.replay.noneOfIts}</p> : <ReplayRun key={`${draft.text} ${callers} ${api?.api_id} ${url.since}`} batch={batchOf(draft.text)} query={query} disabled={same || draft.broken} />}
    </div>
  );
}
