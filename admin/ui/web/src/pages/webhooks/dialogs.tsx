import { useState } from 'react';
import { Failure, request, useRead } from '../../api';
import { randomID } from '../../lib';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { FieldProblems, SelectField, SwitchField, TextField, useProblemsAt } from '../../parts/fields';
import { t } from '../../text/en';
import { one, portal, useSecretCall, wasLost, type Done, type List } from '../portal/model';
import portalCSS from '../portal/portal.module.css';
import type { Webhook } from '.';
import { text } from './text';

/** A secret that was made, with what is opened after it. */
export interface Made {
  name: string;
  secret: string;
  open?: string;
}

type Answer = Done & { Meta: { secret?: string } | null };

/** Creates a webhook, or changes one. */
export function Edit(p: { webhook?: Webhook; etag?: string; onDone: (answer: Done, secret?: Made) => void; onClose: () => void }) {
  const [name, setName] = useState(p.webhook?.name ?? '');
  const [url, setURL] = useState(p.webhook?.url ?? 'https://');
  const [events, setEvents] = useState(p.webhook?.events ?? []);
  const [once] = useState(randomID);
  const call = useSecretCall();
  const body = { name, url: url.trim(), events };
  const send = () =>
    call.run(
      () => (p.webhook ? request<Answer>('PUT', one('webhooks', p.webhook.id), { body, headers: { 'If-Match': p.etag ?? '' } }) : request<Answer>('POST', `${portal}/webhooks`, { body, once })),
      (answer) => p.onDone(answer, answer.Meta?.secret ? { name: name || url, secret: answer.Meta.secret } : undefined),
    );
  return (
    <Dialog
      title={p.webhook ? text.editTitle : text.create}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind="primary" type="submit" form="webhook" busy={call.busy}>
            {p.webhook ? t.save : text.createVerb}
          </Button>
        </>
      }
    >
      <form id="webhook" className={portalCSS.form} onSubmit={(event) => (event.preventDefault(), void send())}>
        <FieldProblems problems={call.failure instanceof Failure ? call.failure.problems : []}>
          <TextField label={text.name} path="name" value={name} onChange={setName} autoFocus />
          <TextField label={text.url} help={text.urlHelp} path="url" value={url} onChange={setURL} required inputMode="url" spellCheck={false} />
          <Events developer={p.webhook?.developer_id ?? ''} value={events} onChange={setEvents} />
        </FieldProblems>
        {call.failure !== undefined && <ErrorPanel failure={call.failure} />}
        {wasLost(call.failure) && <p>{t.secret.lost}</p>}
      </form>
    </Dialog>
  );
}

interface EventType {
  type: string;
  when: string;
  /** Whose streams publish it; without them the portal itself sends it. */
  apis?: { api_id: string; name: string; access: boolean }[];
}

function Events({ developer, value, onChange }: { developer: string; value: string[]; onChange: (value: string[]) => void }) {
  const query = developer && `?developer=${encodeURIComponent(developer)}`;
  const types = useRead(['webhooks', 'events', developer], (signal) => request<List<EventType>>('GET', `${portal}/webhooks/events${query}`, { signal }), { staleTime: 60_000 });
  const ofStreams = (types.data?.Data ?? []).filter((event) => event.apis);
  const problems = useProblemsAt('events', true);
  const every = value.includes('*');
  return (
    <fieldset className={portalCSS.ticks}>
      <legend className={portalCSS.legend}>{text.events}</legend>
      {problems.map((problem, at) => (
        <p key={at} className={portalCSS.problem}>
          {problem.message}
        </p>
      ))}
      <SwitchField label={text.every} path="events" value={every} onChange={(on) => onChange([...(on ? ['*'] : []), ...value.filter((name) => ofStreams.some((event) => event.type === name))])} />
      {types.data?.Data
        .filter((event) => event.apis || !every)
        .map((event) => (
          <SwitchField
            key={event.type}
            label={event.type}
            help={event.apis?.map((api) => (api.access ? api.name : text.withoutAccess(api.name))).join(', ') ?? event.when}
            value={value.includes(event.type)}
            onChange={(on) => onChange(on ? [...value, event.type] : value.filter((other) => other !== event.type))}
          />
        ))}
    </fieldset>
  );
}

/** Makes another secret; the former one may stay valid for a while. */
export function Rotate(p: { webhook: Webhook; onDone: (secret: string) => void; onClose: () => void }) {
  const [grace, setGrace] = useState('24h');
  const call = useSecretCall();
  return (
    <Dialog
      title={text.secretTitle}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind="primary" busy={call.busy} onClick={() => void call.run(() => request<Answer>('POST', `${one('webhooks', p.webhook.id)}/secret`, { body: { grace } }), (answer) => p.onDone(answer.Meta?.secret ?? ''))}>
            {text.secretVerb}
          </Button>
        </>
      }
    >
      <p>{text.secretHelp}</p>
      <SelectField label={text.grace} path="grace" value={grace} onChange={setGrace} options={Object.entries(text.graces).map(([value, label]) => ({ value, label }))} />
      {call.failure !== undefined && <ErrorPanel failure={call.failure} what={text.secretVerb} />}
      {wasLost(call.failure) && <p>{t.secret.lost}</p>}
    </Dialog>
  );
}
