import { expect, test, vi } from 'vitest';
import { type Socket, subscribeBySocket } from './socket';
import type { Event, Protocol } from './transport';

/** A WebSocket whose server is the test. */
class Fake {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  sent: { type: string; id?: string; payload?: unknown }[] = [];
  closed: unknown[] | undefined;
  constructor(public protocol: string) {}
  send(text: string) {
    this.sent.push(JSON.parse(text));
  }
  close(...how: unknown[]) {
    this.closed ??= how;
  }
  says(...messages: object[]) {
    for (const one of messages) this.onmessage?.({ data: JSON.stringify(one) });
  }
}

function begin(protocol: Exclude<Protocol, 'sse'> = 'graphql-transport-ws', headers: Record<string, string> = {}, spoken: string = protocol) {
  const leaving = new AbortController();
  const fake = new Fake(spoken);
  const events = subscribeBySocket({ query: 'subscription { a }', variables: { n: 1 }, operationName: 'A', headers, signal: leaving.signal }, protocol, () => fake as unknown as Socket);
  const all = (async () => {
    const list: Event[] = [];
    for await (const one of events) list.push(one);
    return list;
  })();
  return { fake, all, leave: () => leaving.abort() };
}

const result = (a: number) => ({ data: { a } });
const next = (a: number): Event => ({ kind: 'next', body: JSON.stringify(result(a)) });
const subscribe = { query: 'subscription { a }', variables: { n: 1 }, operationName: 'A' };

test('graphql-transport-ws: results, a ping and the end', async () => {
  const { fake, all } = begin('graphql-transport-ws', { Authorization: 'k' });
  fake.onopen!();
  expect(fake.sent).toEqual([{ type: 'connection_init', payload: { Authorization: 'k' } }]);
  fake.says({ type: 'connection_ack' });
  expect(fake.sent[1]).toEqual({ id: '1', type: 'subscribe', payload: subscribe });
  fake.says({ type: 'next', id: '1', payload: result(1) }, { type: 'ping', payload: { x: 1 } }, { type: 'pong', payload: { type: 'heartbeat' } }, { type: 'next', id: '1', payload: result(2) }, { type: 'complete', id: '1' });
  expect(await all).toEqual([{ kind: 'open' }, next(1), next(2), { kind: 'end', end: { how: 'completed' } }]);
  expect(fake.sent.slice(2)).toEqual([{ type: 'pong', payload: { x: 1 } }]);
  expect(fake.closed).toEqual([1000]);
});

test('the older protocol has other names', async () => {
  const { fake, all } = begin('graphql-ws');
  fake.onopen!();
  fake.says({ type: 'connection_ack' }, { type: 'ka' });
  expect(fake.sent).toEqual([{ type: 'connection_init' }, { id: '1', type: 'start', payload: subscribe }]);
  fake.says({ type: 'data', id: '1', payload: result(1) }, { type: 'error', id: '1', payload: { message: 'no' } });
  expect(await all).toEqual([{ kind: 'open' }, next(1), { kind: 'end', end: { how: 'refused', errors: '[{"message":"no"}]' } }]);
});

test('a refusal keeps its errors', async () => {
  const { fake, all } = begin();
  fake.onopen!();
  fake.says({ type: 'connection_ack' }, { type: 'error', id: '1', payload: [{ message: 'depth' }] });
  expect(await all).toEqual([{ kind: 'open' }, { kind: 'end', end: { how: 'refused', errors: '[{"message":"depth"}]' } }]);
});

test('a refused connection of the older protocol', async () => {
  const { fake, all } = begin('graphql-ws');
  fake.onopen!();
  fake.says({ type: 'connection_error', payload: { message: 'who' } });
  expect(await all).toEqual([{ kind: 'end', end: { how: 'refused', errors: '[{"message":"who"}]' } }]);
});

test('a connection that is closed says by which code and why', async () => {
  const { fake, all } = begin();
  fake.onopen!();
  fake.says({ type: 'connection_ack' });
  fake.onclose!({ code: 4403, reason: 'The key was revoked' });
  expect(await all).toEqual([{ kind: 'open' }, { kind: 'end', end: { how: 'closed', code: 4403, reason: 'The key was revoked' } }]);
});

test('a connection that is not opened', async () => {
  const { fake, all } = begin();
  fake.onclose!({ code: 1006, reason: '' });
  expect(await all).toEqual([{ kind: 'end', end: { how: 'closed', code: 1006, reason: expect.stringContaining('could not be opened') } }]);
});

test.each([
  ['is not JSON', '{'],
  ['is binary', new ArrayBuffer(1)],
  ['is of another operation', '{"type":"next","id":"2","payload":{}}'],
  ['is of the other protocol', '{"type":"data","id":"1","payload":{}}'],
  ['acknowledges again', '{"type":"connection_ack"}'],
  ['has no type', '[]'],
])('a message that %s ends the connection', async (_, data) => {
  const { fake, all } = begin();
  fake.onopen!();
  fake.says({ type: 'connection_ack' });
  fake.onmessage!({ data });
  const events = await all;
  expect(events.at(-1)).toMatchObject({ kind: 'end', end: { how: 'closed' } });
  expect(fake.closed?.[0]).toBe(4400);
});

test('a result before the acknowledgement is not taken', async () => {
  const { fake, all } = begin();
  fake.onopen!();
  fake.says({ type: 'next', id: '1', payload: result(1) });
  expect(await all).toMatchObject([{ kind: 'end', end: { how: 'closed' } }]);
});

test('a server that speaks another protocol', async () => {
  const { fake, all } = begin('graphql-transport-ws', {}, 'graphql-ws');
  fake.onopen!();
  expect(await all).toMatchObject([{ kind: 'end', end: { how: 'closed', reason: expect.stringContaining('"graphql-ws"') } }]);
  expect(fake.sent).toEqual([]);
});

test('a server that never acknowledges', async () => {
  vi.useFakeTimers();
  try {
    const { fake, all } = begin();
    fake.onopen!();
    vi.advanceTimersByTime(20_000);
    expect(await all).toMatchObject([{ kind: 'end', end: { how: 'closed', reason: expect.stringContaining('20 s') } }]);
    expect(fake.closed).toBeDefined();
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  ['graphql-transport-ws', 'complete'],
  ['graphql-ws', 'stop'],
] as const)('leaving by %s ends the operation and the connection', async (protocol, type) => {
  const { fake, all, leave } = begin(protocol);
  fake.onopen!();
  fake.says({ type: 'connection_ack' });
  leave();
  expect(await all).toEqual([{ kind: 'open' }]);
  expect(fake.sent.at(-1)).toEqual({ id: '1', type });
  expect(fake.closed).toEqual([1000]);
});
