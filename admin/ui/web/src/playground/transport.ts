// How calls leave the playground. A transport yields answers until it is done, so that
// one for subscriptions yields many; those over HTTP yield one.

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

export interface Transport {
  send(call: Call): AsyncIterable<Answer>;
}

/** How much of an answer is kept. */
const most = 1 << 20;

/** Calls an endpoint from the browser itself. */
export function direct(endpoint: string): Transport {
  return {
    async *send({ query, variables, operationName, headers, signal }) {
      const began = performance.now();
      const answer = await fetch(endpoint, {
        method: 'POST',
        headers: { accept: 'application/json', ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ query, variables, operationName }),
        credentials: 'same-origin',
        signal,
      });
      const { text, cut } = await read(answer);
      yield {
        status: answer.status,
        headers: [...answer.headers],
        body: text,
        cut,
        requestID: answer.headers.get('x-request-id') ?? undefined,
        tookMS: performance.now() - began,
      };
    },
  };
}

async function read(answer: Response): Promise<{ text: string; cut: boolean }> {
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
