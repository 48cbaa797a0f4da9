// The playground of one API in the management UI: calls go through the admin and a
// gateway, as oneself, as a key or as a policy. No credential of theirs is needed.
import { useEffect, useRef, useState } from 'react';
import { request, respond, useRead } from '../api';
import { useCan } from '../app/session';
import { base } from '../lib';
import { SelectField, SwitchField, TextField } from '../parts/fields';
import { Plan } from '../parts/plan/Plan';
import { useURLState } from '../parts/urlState';
import css from './APIPlayground.module.css';
import type { Answer, Explanation, Playground, Transport, Visible } from './index';
import { answerOf, relayedEvents, type Seen, type Sent, visibleOf } from './relay';
import type { Call } from './transport';

const words = {
  as: 'Call as',
  me: 'Myself',
  key: 'A key',
  policy: 'A policy',
  meHelp: 'With the credentials in Headers, if the API asks for any.',
  keyHelp: 'The hash of the key. Its rules apply; the key itself is not needed.',
  policyHelp: 'As a key with this policy alone.',
  editors: 'To call as a key or as a policy you need the role editor.',
  hash: 'Key hash',
  which: 'Policy',
  choose: 'Choose a policy',
  count: 'Count the call',
  countHelp: 'Under the rate, the quota and the usage of the key. Otherwise these are only checked.',
};

type As = { me: true } | { key_hash: string } | { policy: string };

export function APIPlayground({ id }: { id: string }) {
  const [url, setURL] = useURLState();
  const may = useCan('editor');
  const [count, setCount] = useState(false);
  const [steps, setSteps] = useState<Explanation['steps']>();
  const kind = may && (url.as === 'key' || url.as === 'policy') ? url.as : 'me';
  const value = kind === 'me' ? '' : (url.of ?? '');
  const policies = useRead(['playground', id, 'policies'], (signal) => loadPolicies(id, signal), { enabled: kind === 'policy', on: ['revision'] });
  const host = useRef<HTMLDivElement>(null);
  const playground = useRef<Playground>(undefined);
  const now = useRef<{ as: As; count: boolean }>({ as: { me: true }, count });
  useEffect(() => {
    now.current = { as: kind === 'key' ? { key_hash: value } : kind === 'policy' ? { policy: value } : { me: true }, count: count && kind !== 'policy' };
  });

  // Mounted once an API; the chunk is loaded with the first playground.
  useEffect(() => {
    let gone = false;
    void import('./index').then(({ mount }) => {
      if (gone || !host.current) return;
      playground.current = mount(host.current, {
        name: `ui:${id}`,
        transport: relayed(id, () => now.current, (answer) => setSteps(answer.explanation?.steps)),
        visible: (signal) => visible(id, now.current.as, signal),
        whyLink: (request) => `${base}why/${encodeURIComponent(request)}`,
      });
    });
    return () => {
      gone = true;
      playground.current?.destroy();
      playground.current = undefined;
    };
  }, [id]);
  useEffect(() => playground.current?.refresh(), [kind, value]);

  return (
    <div className={css.all}>
      <div className={css.who}>
        <SelectField
          label={words.as}
          value={kind}
          disabled={!may}
          help={!may ? words.editors : kind === 'me' ? words.meHelp : kind === 'key' ? words.keyHelp : words.policyHelp}
          onChange={(as) => setURL({ as: as === 'me' ? undefined : as, of: undefined })}
          options={[
            { value: 'me', label: words.me },
            { value: 'key', label: words.key },
            { value: 'policy', label: words.policy },
          ]}
        />
        {kind === 'key' && <TextField label={words.hash} code value={value} onChange={(of) => setURL({ of: of.trim() || undefined })} />}
        {kind === 'policy' && (
          <SelectField
            label={words.which}
            value={value}
            onChange={(of) => setURL({ of: of || undefined })}
            options={[{ value: '', label: words.choose }, ...(policies.data ?? []).map((one) => ({ value: one.id, label: one.name || one.id }))]}
          />
        )}
        {kind !== 'policy' && <SwitchField label={words.count} help={words.countHelp} value={count} onChange={setCount} />}
      </div>
      <div ref={host} className={css.host} />
      <Plan facts={steps?.flatMap((one) => one.facts ?? [])} />
    </div>
  );
}

async function loadPolicies(id: string, signal: AbortSignal): Promise<{ id: string; name: string }[]> {
  const found = await request<{ Data: { id: string; name: string }[] }>('GET', '/api/portal/policies', { query: { api_id: id, page_size: 100 }, signal });
  return found.Data;
}

/** Calls go through the admin; seen gets the answer to each operation. */
function relayed(id: string, how: () => { as: As; count: boolean }, seen: (answer: Answer) => void): Transport {
  const path = `/api/apis/${encodeURIComponent(id)}/playground`;
  const options = ({ query, variables, operationName, headers, signal }: Call, stream?: true) => {
    const { as, count } = how();
    return { body: { as, count, stream, method: 'POST', headers, body: JSON.stringify({ query, variables, operationName }) }, signal };
  };
  return {
    async *send(call) {
      const answer = answerOf(await request<Sent>('POST', path, options(call)));
      seen(answer);
      yield answer;
    },
    async *subscribe(call) {
      yield* relayedEvents(await respond('POST', path, options(call, true)), async (answer) => answerOf((await answer.json()) as Sent));
    },
  };
}

async function visible(id: string, as: As, signal: AbortSignal): Promise<Visible> {
  if (('key_hash' in as && !as.key_hash) || ('policy' in as && !as.policy)) return { why: 'Say first who calls.' };
  const seen = await request<Seen>('GET', `/api/apis/${encodeURIComponent(id)}/schema/visible`, { query: 'me' in as ? {} : { ...as }, signal });
  return visibleOf(seen);
}
