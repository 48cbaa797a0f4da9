// What the admin answers where calls go through it: in the management UI and the portal.
import type { Limits, Visible } from './index';
import { eventsOf, isEventStream } from './events';
import type { Answer, Event, Explanation } from './transport';

/** A call's answer. */
export interface Sent {
  status: number;
  headers: { name: string; value: string }[];
  body: string;
  body_base64?: string;
  cut: boolean;
  sent: boolean;
  request_id: string;
  took_ms: number;
  upstream_ms?: number;
  counted?: boolean;
  explanation?: Explanation;
}

/** What a caller may use of a schema. */
export interface Seen {
  allowed: boolean;
  schema: string;
  introspection: boolean;
  depth_base: number;
  max_depth: number;
  max_cost: number;
  list_size: number;
  size_arguments: string[];
  field_depths: Limits['fieldDepths'];
}

export function answerOf(got: Sent): Answer {
  return {
    status: got.status,
    headers: got.headers.map((one) => [one.name, one.value]),
    body: got.sent ? got.body || (got.body_base64 ?? '') : '',
    cut: got.cut,
    requestID: got.request_id || undefined,
    tookMS: got.took_ms,
    upstreamMS: got.upstream_ms,
    counted: got.counted,
    explanation: got.explanation,
  };
}

/** The events of a subscription; json reads an answer that is none. */
export async function* relayedEvents(answer: Response, json: (answer: Response) => Promise<Answer>): AsyncGenerator<Event> {
  if (!isEventStream(answer)) {
    yield { kind: 'answer', answer: await json(answer) };
    return;
  }
  for await (const { name, data } of eventsOf(answer.body!)) {
    switch (name) {
      case 'open':
        yield { kind: 'open', answer: answerOf(JSON.parse(data) as Sent) };
        break;
      case 'next':
        yield { kind: 'next', body: data };
        break;
      case 'error':
        yield { kind: 'end', end: { how: 'refused', errors: data } };
        return;
      case 'complete':
        yield { kind: 'end', end: { how: 'completed' } };
        return;
      case 'closed':
        yield { kind: 'end', end: { how: 'closed', reason: (JSON.parse(data) as { reason: string }).reason } };
        return;
    }
  }
  yield { kind: 'end', end: { how: 'closed', reason: 'The connection to the server was lost.' } };
}

export function visibleOf(seen: Seen): Visible {
  const limits: Limits = {
    depthBase: seen.depth_base,
    maxDepth: seen.max_depth,
    maxCost: seen.max_cost,
    listSize: seen.list_size,
    sizeArguments: seen.size_arguments,
    fieldDepths: seen.field_depths,
  };
  if (!seen.allowed) return { why: 'This caller may not call the API.', limits };
  return { schema: seen.schema || undefined, why: 'The field rules leave nothing that could be queried.', limits };
}
