// Subscriptions over server-sent events: GraphQL over SSE with distinct connections. The
// stream is read with fetch, which can send headers and a body; an EventSource cannot.
import { type Call, type Event, headOf, read } from './transport';

/** How long one event may be, in characters. */
const mostEvent = 2 << 20;

/** One event of a text/event-stream. */
export interface Sent {
  name: string;
  data: string;
}

/** Runs a subscription at an endpoint. */
export async function* subscribeByEvents(endpoint: string, { query, variables, operationName, headers, signal }: Call): AsyncGenerator<Event> {
  const began = performance.now();
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: { ...headers, accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables, operationName }),
    credentials: 'same-origin',
    signal,
  });
  if (!isEventStream(answer)) {
    const { text, cut } = await read(answer);
    yield { kind: 'answer', answer: { ...headOf(answer), body: text, cut, tookMS: performance.now() - began } };
    return;
  }
  yield { kind: 'open', answer: { ...headOf(answer), body: '', tookMS: performance.now() - began } };
  for await (const { name, data } of eventsOf(answer.body!)) {
    if (name === 'complete') {
      yield { kind: 'end', end: { how: 'completed' } };
      return;
    }
    if (name === 'next' || name === 'message') yield { kind: 'next', body: data };
  }
  yield { kind: 'end', end: { how: 'closed', reason: 'The stream ended without the event "complete".' } };
}

export function isEventStream(answer: Response): boolean {
  return answer.body !== null && (answer.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream');
}

/**
 * Reads a text/event-stream (WHATWG HTML, section 9.2). An event that the stream ends
 * within is dropped. The stream is cancelled when the reader leaves.
 */
export async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Sent> {
  const reader = stream.getReader();
  const decoder = new TextDecoder(); // drops a byte order mark
  const parser = new Parser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    void reader.cancel().catch(() => {}); // it may have failed already
  }
}

/** Turns pieces of text into events. */
export class Parser {
  private rest = '';
  private name = '';
  private data: string[] = [];
  private size = 0;

  push(text: string): Sent[] {
    this.rest += text;
    const found: Sent[] = [];
    for (;;) {
      const end = /\r\n|\n|\r(?!$)/.exec(this.rest); // a return at the end may be half of a line end
      if (!end) break;
      const line = this.rest.slice(0, end.index);
      this.rest = this.rest.slice(end.index + end[0].length);
      const one = this.line(line);
      if (one) found.push(one);
    }
    if (this.size + this.rest.length > mostEvent) throw new Error('an event is larger than two million characters.');
    return found;
  }

  private line(line: string): Sent | undefined {
    if (line === '') {
      const event = { name: this.name || 'message', data: this.data.join('\n') };
      const sent = this.data.length > 0 || this.name === 'complete';
      [this.name, this.data, this.size] = ['', [], 0];
      return sent ? event : undefined;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.name = value;
    if (field === 'data') {
      this.data.push(value);
      this.size += value.length;
    }
    return undefined;
  }
}
