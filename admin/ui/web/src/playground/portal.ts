// The page of the portal: calls go to the portal, which makes them as one of the
// developer's own keys. No key is in the page.
import { mount, type Transport } from './index';
import { answerOf, relayedEvents, type Seen, type Sent, visibleOf } from './relay';
import type { Answer, Call } from './transport';

export function mountPortal(host: HTMLElement) {
  const { relay = '', token = '', name = '', query } = host.dataset;
  const choice = document.getElementById('play-key') as HTMLSelectElement | null;
  document.getElementById('play')!.hidden = false;
  const key = () => choice?.value ?? '';
  const make = ({ query, variables, operationName, headers, signal }: Call, more = {}) => {
    const body = new URLSearchParams({ token, key: key(), query, operation: operationName ?? '', headers: JSON.stringify(headers), ...more });
    if (variables !== undefined) body.set('variables', JSON.stringify(variables));
    return fetch(relay, { method: 'POST', body, signal });
  };
  const transport: Transport = {
    async *send(call) {
      yield answered(await said<Sent>(await make(call)));
    },
    async *subscribe(call) {
      for await (const event of relayedEvents(await make(call, { stream: '1' }), async (answer) => answered(await said<Sent>(answer)))) {
        yield event.kind === 'open' && event.answer ? { ...event, answer: { ...event.answer, counted: true } } : event;
      }
    },
  };
  const playground = mount(host, {
    name: `portal:${name}`,
    transport,
    query,
    visible: async (signal) => visibleOf(await said<Seen>(await fetch(`${relay}/schema?${new URLSearchParams({ key: key() })}`, { signal }))),
  });
  choice?.addEventListener('change', () => playground.refresh());
}

function answered(got: Sent): Answer {
  if (!got.sent) throw new Error('no gateway takes the call for this API.');
  return answerOf({ ...got, counted: got.explanation?.outcome.allowed || undefined });
}

/** The answer of the portal; an error with its words for a refusal. */
async function said<T>(answer: Response): Promise<T> {
  if (!answer.headers.get('content-type')?.startsWith('application/json')) {
    throw new Error(answer.redirected || answer.status === 403 ? 'you are signed out. Sign in, and open this page again.' : `status ${answer.status}`);
  }
  const value = (await answer.json()) as T & { error?: string };
  if (!answer.ok) throw new Error(value.error ?? `status ${answer.status}`);
  return value;
}
