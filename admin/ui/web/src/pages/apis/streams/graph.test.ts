import { expect, test } from 'vitest';
import { copyAt, parse, textAt, valueOf } from '../../../parts/draft/merge';
import { graphOf, isName, liveOf, metadataOf, nodesOf, problemsOf, routesOf, streamPath, type Status } from './graph';
import { templates } from './templates';

test('a stream has its connectors and processors at the paths of the server', () => {
  const graph = graphOf({
    input: { label: 'in', broker: { inputs: [{ http_server: { path: '/a' } }, { msgbroker: { topics: ['t', 'u'] } }] } },
    pipeline: {
      processors: [
        { mapping: 'root = this' },
        { label: 'ask', branch: { request_map: '', processors: [{ http: { url: 'https://x.example/' } }] } },
        { switch: { cases: [{ check: 'true', processors: [{ filter: { check: 'this.a' } }] }, { processors: [{ log: {} }] }] } },
        { switch: [{ processors: [{ mapping: 'root = 1' }] }] },
      ],
    },
    output: { broker: { pattern: 'round_robin', outputs: [{ broker: { outputs: [{ http_client: { url: 'https://y.example/' } }] } }, { msgbroker: { topic: 'z' } }] } },
    dead_letter: { include_error: true, msgbroker: { topic: 'dead' } },
  });
  expect(nodesOf(graph).map((node) => `${node.depth} ${node.path} ${node.kind} ${node.detail}`.trim())).toEqual([
    '0 input.broker.inputs[0] http_server /a',
    '0 input.broker.inputs[1] msgbroker t, u',
    '0 pipeline.processors[0] mapping',
    '0 pipeline.processors[1] branch',
    '1 pipeline.processors[1].branch.processors[0] http https://x.example/',
    '0 pipeline.processors[2] switch',
    '1 pipeline.processors[2].switch.cases[0].processors[0] filter this.a',
    '1 pipeline.processors[2].switch.cases[1].processors[0] log',
    '0 pipeline.processors[3] switch',
    '1 pipeline.processors[3].switch.cases[0].processors[0] mapping',
    '0 output.broker.outputs[0].broker.outputs[0] http_client https://y.example/',
    '0 output.broker.outputs[1] msgbroker z',
    '0 dead_letter msgbroker dead',
  ]);
  expect(graph.pattern).toBe('round_robin');
});

test('what is no stream has an empty graph', () => {
  for (const value of [undefined, null, 1, [], {}, { input: 'x', pipeline: [], output: { broker: 1 } }]) expect(graphOf(value).processors).toEqual([]);
});

const node = (more: object) => ({
  path: 'input', label: '', kind: 'http_server', side: 'input', phase: 'running', since: null, messages: 1, bytes: 1, attempts: 0, errors: { transient: 1, unknown: 0, permanent: 0, refused: 0 },
  again: 0, clients: 2, clients_dropped: 0, lag: -1, mean_seconds: 1, last_error: '', last_error_at: null, ...more,
});
const stream = (more: object) =>
  ({ gateway: 'g', api_id: 'a', org_id: 'o', stream: 's', phase: 'running', since: '', messages_in: 1, messages_out: 2, in_flight: 3, in_flight_bytes: 0, oldest_unsettled_seconds: 1, last_error: '', last_error_at: null, nodes: [node({})], ...more }) as Status;

test('what several gateways say is added up', () => {
  const live = liveOf(
    [
      stream({ last_error: 'old', last_error_at: '2026-11-21T12:00:00Z' }),
      stream({ phase: 'failing', oldest_unsettled_seconds: 9, last_error: 'new', last_error_at: '2026-11-21T13:00:00Z', nodes: [node({ messages: 3, lag: 4, mean_seconds: 5, phase: 'failing' })] }),
      stream({ stream: 'other', phase: 'reconnecting' }),
    ],
    's',
  )!;
  expect([live.phase, live.in, live.out, live.inFlight, live.oldest, live.lastError, live.gateways.length]).toEqual(['failing', 2, 4, 6, 9, 'new', 2]);
  expect(live.nodes.get('input')).toMatchObject({ phase: 'failing', messages: 4, clients: 4, lag: 4, mean_seconds: 4, errors: { transient: 2 } });
  expect(liveOf([], 's')).toBeUndefined();
});

test('problems of a stream are placed in its object', () => {
  expect(
    problemsOf(
      [
        { path: 'x-svc-streaming.streams.s.input.http_server.pth', message: 'unknown field' },
        { path: 'x-svc-streaming.streams.s.pipeline.processors[0].mapping:2:6', message: 'expected a comma' },
        { path: 'x-svc-streaming.streams.s.pipeline.processors[1].mapping', message: '1:3: no' },
        { path: 'x-svc-streaming.streams["a.b"].output', message: 'is required' },
        { path: 'name', message: 'is required' },
      ],
      's',
    ),
  ).toEqual([
    { path: 'input.http_server.pth', message: 'unknown field' },
    { path: 'pipeline.processors[0].mapping', message: 'expected a comma', line: 2, column: 6 },
    { path: 'pipeline.processors[1].mapping', message: 'no', line: 1, column: 3 },
  ]);
  expect(problemsOf([{ path: 'x-svc-streaming.streams["a.b"].output', message: 'is required' }], 'a.b')).toEqual([{ path: 'output', message: 'is required' }]);
});

test('the text of a stream is cut out of a definition and put back', () => {
  const text = '{\n  "name": "x",\n  "x-svc-streaming": {\n    "streams": {\n      "a.b": {\n        "input": {"n": 12345678901234567890}\n      }\n    }\n  }\n}\n';
  const path = streamPath('a.b');
  expect(textAt(text, path)).toBe('{\n  "input": {"n": 12345678901234567890}\n}');
  expect(textAt(text, streamPath('none'))).toBeUndefined();
  const next = copyAt(text, '{"x-svc-streaming":{"streams":{"a.b":{"input":{"n":12345678901234567891}}}}}', path);
  expect(valueOf(parse(next).tree, next)).toEqual({ name: 'x', 'x-svc-streaming': { streams: { 'a.b': { input: { n: 'number 12345678901234567891' } } } } });
});

test('routes are those of http_server', () => {
  expect(routesOf(templates.find((one) => one.id === 'sse')!.make('n'))).toEqual({ post: [{ path: '/n', verb: 'POST' }], events: ['/n'] });
  expect(routesOf({ input: { http_server: {} }, output: { broker: { outputs: [{ http_server: {} }, { http_server: { path: '/p', stream_path: '/q' } }] } } })).toEqual({ post: [{ path: '/post', verb: 'POST' }], events: ['/get/stream', '/q'] });
  expect(routesOf({ input: { websocket_server: { path: '/w' } } })).toEqual({ post: [], events: [] });
});

test('metadata is a name and a value a line', () => {
  expect(metadataOf('a: b\n\n c:d:e \nalone')).toEqual({ a: 'b', c: 'd:e', alone: '' });
  expect([isName('a.b-c_1'), isName(''), isName('.a'), isName('a b'), isName('x'.repeat(65))]).toEqual([true, false, false, false, false]);
});
