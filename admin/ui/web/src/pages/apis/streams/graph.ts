// An event stream as a graph: what its object has, and what gateways say of it.
import type { components } from '../../../api.gen';
import { pathOf, pathText } from '../../../parts/draft/merge';
import type { Problem } from '../../../api/failure';

export type Status = components['schemas']['Stream'];
export type Phase = Status['phase'];
type Live = components['schemas']['Node'];
export type Side = Live['side'];

export interface GraphNode {
  /** In the stream object, as the server writes it: output.broker.outputs[1]. */
  path: string;
  kind: string;
  label: string;
  /** What tells it from others of its kind: paths, topics, an address. */
  detail: string;
  side: Side;
  /** How deep it is in branches and cases. */
  depth: number;
}

export interface Graph {
  inputs: GraphNode[];
  processors: GraphNode[];
  outputs: GraphNode[];
  dead: GraphNode[];
  /** Which of several outputs take a message; '' for one output. */
  pattern: string;
}

type Members = Record<string, unknown>;
const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Members of an item beside its connector or processor. */
const beside = ['label', 'on_error', 'include_error', 'processors'];
const kindOf = (item: Members) => Object.keys(item).find((name) => !beside.includes(name)) ?? '';

function detailOf(kind: string, of: unknown): string {
  const c = isObject(of) ? of : {};
  switch (kind) {
    case 'http_server':
    case 'websocket_server':
      return [c.path, c.stream_path, c.ws_path].filter(Boolean).map(textOf).join(' ');
    case 'msgbroker':
      return textOf(c.topic) || listOf(c.topics).map(textOf).join(', ');
    case 'http_client':
    case 'http':
      return textOf(c.url);
    case 'portal_webhook':
      return textOf(c.event_type);
    case 'batch':
      return [c.count, c.period].filter(Boolean).join(', ');
    case 'filter':
      return textOf(c.check);
  }
  return '';
}

/** The connectors of one end; those of a broker one by one. */
function connectors(value: unknown, path: string, side: Side): GraphNode[] {
  if (!isObject(value)) return [];
  const kind = kindOf(value);
  const broker = value.broker;
  if (kind === 'broker' && isObject(broker)) {
    const name = side === 'input' ? 'inputs' : 'outputs';
    return listOf(broker[name]).flatMap((one, n) => connectors(one, `${path}.broker.${name}[${n}]`, side));
  }
  return [{ path, kind, label: textOf(value.label), detail: detailOf(kind, value[kind]), side, depth: 0 }];
}

/** The processors of a list, each before those inside it. */
function processors(value: unknown, path: string, depth: number): GraphNode[] {
  return listOf(value).flatMap((item, n) => {
    if (!isObject(item)) return [];
    const at = `${path}[${n}]`;
    const kind = kindOf(item);
    const of = item[kind];
    const node: GraphNode = { path: at, kind, label: textOf(item.label), detail: detailOf(kind, of), side: 'processor', depth };
    if (kind === 'branch' && isObject(of)) return [node, ...processors(of.processors, `${at}.branch.processors`, depth + 1)];
    if (kind === 'switch') {
      const cases = Array.isArray(of) ? of : isObject(of) ? listOf(of.cases) : [];
      return [node, ...cases.flatMap((one, k) => (isObject(one) ? processors(one.processors, `${at}.switch.cases[${k}].processors`, depth + 1) : []))];
    }
    return [node];
  });
}

/** The graph of a stream object, as far as it is one. */
export function graphOf(stream: unknown): Graph {
  const s = isObject(stream) ? stream : {};
  const output = isObject(s.output) ? s.output : {};
  const outputs = connectors(s.output, 'output', 'output');
  const broker = isObject(output.broker) ? output.broker : {};
  return {
    inputs: connectors(s.input, 'input', 'input'),
    processors: processors(isObject(s.pipeline) ? s.pipeline.processors : [], 'pipeline.processors', 0),
    outputs,
    dead: connectors(s.dead_letter, 'dead_letter', 'dead_letter'),
    pattern: outputs.length > 1 ? textOf(broker.pattern) || 'fan_out' : '',
  };
}

export const nodesOf = (g: Graph) => [...g.inputs, ...g.processors, ...g.outputs, ...g.dead];

/** The phases, those that need attention last. */
export const phases: Phase[] = ['stopped', 'draining', 'running', 'waiting', 'starting', 'reconnecting', 'failing'];

const worse = <P extends string>(a: P | '', b: P | ''): P | '' => (phases.indexOf(a as Phase) < phases.indexOf(b as Phase) ? b : a);

/** What all gateways say of a node together. */
export type LiveNode = Pick<Live, 'phase' | 'messages' | 'bytes' | 'attempts' | 'errors' | 'again' | 'clients' | 'clients_dropped' | 'lag' | 'mean_seconds' | 'last_error' | 'last_error_at'>;

export interface LiveStream {
  phase: Phase;
  in: number;
  out: number;
  inFlight: number;
  oldest: number;
  lastError: string;
  lastErrorAt: string | null;
  gateways: Status[];
  nodes: Map<string, LiveNode>;
}

const later = (a: string | null, b: string | null) => !!b && (!a || new Date(b) > new Date(a));

/** What gateways say of the stream of a name; undefined: none runs it. */
export function liveOf(all: Status[], name: string): LiveStream | undefined {
  const of = all.filter((one) => one.stream === name);
  if (of.length === 0) return undefined;
  const sum: LiveStream = { phase: of[0]!.phase, in: 0, out: 0, inFlight: 0, oldest: 0, lastError: '', lastErrorAt: null, gateways: of, nodes: new Map() };
  for (const one of of) {
    sum.phase = worse(sum.phase, one.phase) as Phase;
    sum.in += one.messages_in;
    sum.out += one.messages_out;
    sum.inFlight += one.in_flight;
    sum.oldest = Math.max(sum.oldest, one.oldest_unsettled_seconds);
    if (later(sum.lastErrorAt, one.last_error_at)) [sum.lastError, sum.lastErrorAt] = [one.last_error, one.last_error_at];
    for (const node of one.nodes ?? []) sum.nodes.set(node.path, together(sum.nodes.get(node.path), node));
  }
  return sum;
}

function together(a: LiveNode | undefined, b: Live): LiveNode {
  if (!a) return { ...b, errors: { ...b.errors } };
  const messages = a.messages + b.messages;
  return {
    phase: worse(a.phase, b.phase),
    messages,
    bytes: a.bytes + b.bytes,
    attempts: a.attempts + b.attempts,
    errors: {
      transient: a.errors.transient + b.errors.transient,
      unknown: a.errors.unknown + b.errors.unknown,
      permanent: a.errors.permanent + b.errors.permanent,
      refused: a.errors.refused + b.errors.refused,
    },
    again: a.again + b.again,
    clients: a.clients + b.clients,
    clients_dropped: a.clients_dropped + b.clients_dropped,
    lag: a.lag < 0 ? b.lag : b.lag < 0 ? a.lag : a.lag + b.lag,
    mean_seconds: messages > 0 ? (a.mean_seconds * a.messages + b.mean_seconds * b.messages) / messages : 0,
    ...(later(a.last_error_at, b.last_error_at) ? { last_error: b.last_error, last_error_at: b.last_error_at } : { last_error: a.last_error, last_error_at: a.last_error_at }),
  };
}

export const errorsOf = (node: LiveNode) => node.errors.transient + node.errors.unknown + node.errors.permanent + node.errors.refused;

/** A problem of a definition at its place in one stream. */
export interface StreamProblem {
  /** In the stream object, '' for the object itself. */
  path: string;
  message: string;
  /** In the script at the path, from 1. */
  line?: number;
  column?: number;
}

const streamsPath = ['x-svc-streaming', 'streams'];

/** The problems of a stream, with their paths in its object. */
export function problemsOf(problems: Problem[], name: string): StreamProblem[] {
  return problems.flatMap((one) => {
    const [, plain = one.path, line, column] = /^(.*?):(\d+):(\d+)$/.exec(one.path) ?? [];
    const parts = pathOf(plain);
    if (parts[0] !== streamsPath[0] || parts[1] !== streamsPath[1] || parts[2] !== name) return [];
    const inMessage = line === undefined ? /^(\d+):(\d+): (.*)$/s.exec(one.message) : null;
    return [
      {
        path: pathText(parts.slice(3)),
        message: inMessage?.[3] ?? one.message,
        ...(line !== undefined || inMessage ? { line: Number(line ?? inMessage![1]), column: Number(column ?? inMessage![2]) } : {}),
      },
    ];
  });
}

/** The path of a stream in a definition. */
export const streamPath = (name: string, path = '') => [...streamsPath, name, ...pathOf(path)];

/** Whether a text can be the name of a stream. */
export const isName = (text: string) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(text);

/** Metadata as it is typed: a name and a value a line, with a colon between. */
export function metadataOf(text: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return colon < 0 ? [line, ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}

/** Where messages of clients go in, and come out as events, below the listen path. */
export function routesOf(stream: unknown): { post: { path: string; verb: string }[]; events: string[] } {
  const found = { post: [] as { path: string; verb: string }[], events: [] as string[] };
  const visit = (value: unknown, side: 'input' | 'output') => {
    if (!isObject(value)) return;
    const broker = isObject(value.broker) ? value.broker : {};
    for (const one of listOf(broker[side === 'input' ? 'inputs' : 'outputs'])) visit(one, side);
    const server = value.http_server;
    if (!isObject(server)) return;
    const path = textOf(server.path);
    const streamed = textOf(server.stream_path);
    if (side === 'input') {
      const verb = textOf(listOf(server.allowed_verbs)[0]) || 'POST';
      if (path || !server.ws_path) found.post.push({ path: path || '/post', verb });
    } else if (streamed) found.events.push(streamed);
    else if (path && !server.ws_path) found.events.push(path);
    else if (!path && !server.ws_path) found.events.push('/get/stream');
  };
  if (isObject(stream)) {
    visit(stream.input, 'input');
    visit(stream.output, 'output');
  }
  return found;
}
