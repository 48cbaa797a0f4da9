// Calls that go from the browser to the API itself, for the public page.
import { subscribeByEvents } from './events';
import { subscribeBySocket } from './socket';
import { headOf, read, type Transport } from './transport';

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
      yield { ...headOf(answer), body: text, cut, tookMS: performance.now() - began };
    },
    protocols: ['graphql-transport-ws', 'graphql-ws', 'sse'],
    subscribe(call, protocol) {
      return protocol === 'sse' ? subscribeByEvents(endpoint, call) : subscribeBySocket(call, protocol, (name) => new WebSocket(socketURL(endpoint), name));
    },
  };
}

function socketURL(endpoint: string): URL {
  const url = new URL(endpoint, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}
