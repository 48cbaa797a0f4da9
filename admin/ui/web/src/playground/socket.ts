// Subscriptions over WebSocket, by graphql-transport-ws and by the older graphql-ws. A
// connection carries one subscription and ends with it.
import type { Call, End, Event, Protocol } from './transport';

/** What is used of a WebSocket. */
export type Socket = Pick<WebSocket, 'protocol' | 'onopen' | 'onmessage' | 'onclose' | 'send' | 'close'>;

/** How long the server may take to acknowledge the connection. */
const ackWithin = 20_000;

const id = '1'; // of the only operation

const unopened =
  'The connection could not be opened. A browser does not say why: WebSockets may be off at the gateway, or a credential may be missing, which the handshake takes from the address or a cookie. SSE sends the headers and shows a refusal.';

/** Runs a subscription. The headers go into the payload of connection_init: a browser cannot send them. */
export async function* subscribeBySocket(call: Call, protocol: Exclude<Protocol, 'sse'>, connect: (protocol: string) => Socket): AsyncGenerator<Event> {
  const events = new Queue();
  const socket = connect(protocol);
  const session = new Session(call, protocol, socket, events);
  const leave = () => session.leave();
  call.signal.addEventListener('abort', leave);
  if (call.signal.aborted) leave();
  try {
    yield* events.all();
  } finally {
    call.signal.removeEventListener('abort', leave);
    leave();
  }
}

/** The state of one connection. */
class Session {
  private state: 'opening' | 'greeting' | 'live' | 'over' = 'opening';
  private timer: ReturnType<typeof setTimeout> | undefined;
  private older: boolean;

  constructor(
    private call: Call,
    private name: string,
    private socket: Socket,
    private events: Queue,
  ) {
    this.older = name === 'graphql-ws';
    socket.onopen = () => this.opened();
    socket.onmessage = (event) => this.message(event.data);
    socket.onclose = ({ code, reason }) => this.over({ how: 'closed', code, reason: reason || (this.state === 'opening' ? unopened : undefined) });
  }

  private opened() {
    if (this.state !== 'opening') return;
    this.state = 'greeting';
    if (this.socket.protocol !== this.name) return this.broken(`The server speaks ${JSON.stringify(this.socket.protocol)} and not ${this.name}.`);
    this.timer = setTimeout(() => this.broken('The server has not acknowledged the connection within 20 s.'), ackWithin);
    const { headers } = this.call;
    this.send({ type: 'connection_init', ...(Object.keys(headers).length > 0 ? { payload: headers } : {}) });
  }

  private message(data: unknown) {
    if (this.state === 'over') return;
    const got = messageOf(data);
    switch (got?.type) {
      case 'connection_ack':
        return this.acknowledged();
      case 'ping':
        return this.send({ type: 'pong', ...(got.payload === undefined ? {} : { payload: got.payload }) });
      case 'pong':
      case 'ka':
        return;
      case this.older ? 'data' : 'next':
        if (got.id === id && this.state === 'live') return this.events.push({ kind: 'next', body: JSON.stringify(got.payload ?? null) });
        break;
      case 'error':
        if (got.id === id) return this.end({ how: 'refused', errors: listOf(got.payload) });
        break;
      case 'connection_error':
        return this.end({ how: 'refused', errors: listOf(got.payload) });
      case 'complete':
        if (got.id === id) return this.end({ how: 'completed' });
        break;
    }
    this.broken('The server has sent a message that is not understood.');
  }

  private acknowledged() {
    if (this.state !== 'greeting') return this.broken('The server has acknowledged the connection twice.');
    clearTimeout(this.timer);
    this.state = 'live';
    const { query, variables, operationName } = this.call;
    this.send({ id, type: this.older ? 'start' : 'subscribe', payload: { query, variables, operationName } });
    this.events.push({ kind: 'open' });
  }

  /** Ends the subscription for the caller. */
  leave() {
    if (this.state === 'live') this.send({ id, type: this.older ? 'stop' : 'complete' });
    this.finish();
  }

  private broken(reason: string) {
    this.over({ how: 'closed', reason });
    this.socket.close(4400, 'Bad response');
  }

  /** Ends with what the server has said, and closes the connection. */
  private end(end: End) {
    this.over(end);
    this.socket.close(1000);
  }

  private over(end: End) {
    if (this.state === 'over') return;
    this.events.push({ kind: 'end', end });
    this.state = 'over';
    clearTimeout(this.timer);
    this.events.end();
  }

  private finish() {
    if (this.state !== 'over') this.socket.close(1000);
    this.state = 'over';
    clearTimeout(this.timer);
    this.events.end();
  }

  private send(message: object) {
    this.socket.send(JSON.stringify(message));
  }
}

interface Message {
  type: string;
  id?: unknown;
  payload?: unknown;
}

function messageOf(data: unknown): Message | undefined {
  try {
    const value: unknown = typeof data === 'string' ? JSON.parse(data) : undefined;
    return typeof value === 'object' && value !== null && typeof (value as Message).type === 'string' ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}

/** The errors of a refusal as a list: the older protocol sends one. */
function listOf(payload: unknown): string {
  return JSON.stringify(Array.isArray(payload) ? payload : [payload ?? { message: 'The server gives no reason.' }]);
}

/** Events that wait for their reader. */
class Queue {
  private waiting: Event[] = [];
  private ended = false;
  private wake: (() => void) | undefined;

  push(event: Event) {
    if (this.ended) return;
    this.waiting.push(event);
    this.wake?.();
  }

  end() {
    this.ended = true;
    this.wake?.();
  }

  async *all(): AsyncGenerator<Event> {
    for (;;) {
      const next = this.waiting.shift();
      if (next) yield next;
      else if (this.ended) return;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}
