import { afterEach, expect, test, vi } from 'vitest';
import { eventsOf, Parser, subscribeByEvents } from './events';
import { relayedEvents } from './relay';
import type { Event } from './transport';

const stream = (...pieces: string[]) =>
  new ReadableStream<Uint8Array>({
    start(to) {
      for (const one of pieces) to.enqueue(new TextEncoder().encode(one));
      to.close();
    },
  });

async function all<T>(from: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of from) list.push(one);
  return list;
}

afterEach(() => vi.unstubAllGlobals());

test('events are read whatever their lines end with and wherever they are cut', async () => {
  const text = '\uFEFF: hello\n\nevent: next\ndata: {"a":\ndata: 1}\n\ndata:x\r\n\r\nevent:next\rdata: ü\r\revent: complete\n\nid: 7\n\ndata: cut off';
  const want = [
    { name: 'next', data: '{"a":\n1}' },
    { name: 'message', data: 'x' },
    { name: 'next', data: 'ü' },
    { name: 'complete', data: '' },
  ];
  expect(await all(eventsOf(stream(text)))).toEqual(want);
  const bytes = new TextEncoder().encode(text);
  for (let at = 1; at < bytes.length; at++) {
    const cut = new ReadableStream<Uint8Array>({
      start(to) {
        to.enqueue(bytes.slice(0, at));
        to.enqueue(bytes.slice(at));
        to.close();
      },
    });
    expect(await all(eventsOf(cut))).toEqual(want);
  }
});

test('an event without end is refused', () => {
  const parser = new Parser();
  parser.push('data: ' + 'x'.repeat(1 << 20) + '\n');
  expect(() => parser.push('data: ' + 'y'.repeat(1 << 20))).toThrow('larger than');
});

const call = { query: 'subscription { a }', headers: { Authorization: 'k', accept: 'x' }, signal: new AbortController().signal };
const answers = (body: BodyInit, type: string, status = 200) => {
  const fetched = vi.fn(async (..._: Parameters<typeof fetch>) => new Response(body, { status, headers: { 'content-type': type } }));
  vi.stubGlobal('fetch', fetched);
  return fetched;
};

test('a subscription over SSE sends the headers and yields results until it completes', async () => {
  const fetched = answers(stream('event: next\ndata: {"data":{"a":1}}\n\n', ':\n\nevent: complete\ndata:\n\nevent: next\ndata: late\n\n'), 'text/event-stream; charset=utf-8');
  const events = await all(subscribeByEvents('/graph/', call));
  expect(events).toMatchObject([{ kind: 'open', answer: { status: 200 } }, { kind: 'next', body: '{"data":{"a":1}}' }, { kind: 'end', end: { how: 'completed' } }]);
  expect(fetched.mock.calls[0]).toMatchObject(['/graph/', { method: 'POST', headers: { Authorization: 'k', accept: 'text/event-stream' } }]);
});

test('a stream that breaks off does not look complete', async () => {
  answers(stream('event: next\ndata: {}\n\n'), 'text/event-stream');
  expect((await all(subscribeByEvents('/graph/', call))).at(-1)).toMatchObject({ kind: 'end', end: { how: 'closed' } });
});

test('a refusal is an answer', async () => {
  answers('{"error":"depth"}', 'application/json', 400);
  expect(await all(subscribeByEvents('/graph/', call))).toMatchObject([{ kind: 'answer', answer: { status: 400, body: '{"error":"depth"}' } }]);
});

test('events that the admin passes on', async () => {
  const of = (text: string) => all(relayedEvents(new Response(stream(text), { headers: { 'content-type': 'text/event-stream' } }), () => Promise.reject(new Error('no JSON'))));
  const sent = { status: 200, headers: [], body: '', cut: false, sent: true, request_id: '4bf9', took_ms: 1 };
  const open = `event: open\ndata: ${JSON.stringify(sent)}\n\n`;
  const begun = { kind: 'open', answer: { status: 200, requestID: '4bf9' } };
  expect(await of(`${open}event: next\ndata: {}\n\nevent: complete\n\n`)).toMatchObject([begun, { kind: 'next', body: '{}' }, { kind: 'end', end: { how: 'completed' } }]);
  expect(await of(`${open}event: error\ndata: [{"message":"no"}]\n\n`)).toMatchObject([begun, { kind: 'end', end: { how: 'refused', errors: '[{"message":"no"}]' } }]);
  expect(await of(`${open}event: closed\ndata: {"reason":"ten minutes"}\n\n`)).toMatchObject([begun, { kind: 'end', end: { how: 'closed', reason: 'ten minutes' } }]);
  expect(await of(open)).toMatchObject([begun, { kind: 'end', end: { how: 'closed', reason: expect.stringContaining('lost') } }]);
  const refused: Event[] = await all(relayedEvents(new Response('{}', { headers: { 'content-type': 'application/json' } }), async () => ({ status: 400, headers: [], body: 'x' })));
  expect(refused).toMatchObject([{ kind: 'answer', answer: { status: 400 } }]);
});
