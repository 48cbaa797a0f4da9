// How calls leave the playground: operations over HTTP, which have one answer, and
// subscriptions, which have events.

export interface Call {
  query: string;
  variables?: unknown;
  operationName?: string;
  headers: Record<string, string>;
  signal: AbortSignal;
}

export interface Step {
  stage: string;
  result: string;
  said?: string;
  fix?: string;
  facts?: { rule: string; value: string; seen?: string; from?: string }[];
}

export interface Explanation {
  steps: Step[];
  outcome: { allowed?: boolean; reason?: string; stage?: string; fix?: string };
}

export interface Answer {
  status: number;
  headers: [name: string, value: string][];
  body: string;
  /** The body was longer than what is kept. */
  cut?: boolean;
  requestID?: string;
  tookMS?: number;
  upstreamMS?: number;
  counted?: boolean;
  explanation?: Explanation;
}

/** How a subscription ended. */
export interface End {
  how: 'completed' | 'refused' | 'closed';
  /** Of a WebSocket's close frame. */
  code?: number;
  reason?: string;
  /** The errors of a refusal, a JSON array. */
  errors?: string;
}

/** What comes of a subscription, in this order: an answer alone, or open, results, and an end. */
export type Event =
  | { kind: 'answer'; answer: Answer }
  | { kind: 'open'; answer?: Answer }
  | { kind: 'next'; body: string }
  | { kind: 'end'; end: End };

/** The protocols by which a browser subscribes. */
export type Protocol = 'graphql-transport-ws' | 'graphql-ws' | 'sse';

export interface Transport {
  send(call: Call): AsyncIterable<Answer>;
  /** Runs a subscription. It ends with the events, or with the call's signal. */
  subscribe(call: Call, protocol: Protocol): AsyncIterable<Event>;
  /** What can be chosen from; none where calls take one way only. */
  protocols?: readonly Protocol[];
}

/** How much of an answer is kept. */
const most = 1 << 20;

/** What an answer over HTTP says before its body. */
export function headOf(answer: Response): Omit<Answer, 'body'> {
  return { status: answer.status, headers: [...answer.headers], requestID: answer.headers.get('x-request-id') ?? undefined };
}

/** Reads the body of an answer as text, as much of it as is kept. */
export async function read(answer: Response): Promise<{ text: string; cut: boolean }> {
  const reader = answer.body?.getReader();
  if (!reader) return { text: '', cut: false };
  const decoder = new TextDecoder();
  let [text, size] = ['', 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), cut: false };
    size += value.byteLength;
    text += decoder.decode(value, { stream: true });
    if (size > most) {
      await reader.cancel();
      return { text, cut: true };
    }
  }
}
