// Runs a query, a mutation and a subscription with each client against each API, and prints
// a line of JSON for each: what the client got.
import { createClient as createEvents } from 'graphql-sse';
import { createClient } from 'graphql-ws';
import { SubscriptionClient } from 'subscriptions-transport-ws';
import WebSocket from 'ws';

const { LIVE_GATEWAY: gateway, LIVE_KEY: key } = process.env;
const apis = process.env.LIVE_APIS.split(' ');

const operations = {
  query: { query: 'query Q($name: String) { hello(name: $name) }', variables: { name: 'you' } },
  mutation: { query: 'mutation { add(n: 0) }' },
  subscription: { query: 'subscription { count(to: 3) }' },
  refused: { query: '{ nope }' },
};

/** The WebSocket of a client that has a key. */
class Keyed extends WebSocket {
  constructor(url, protocols) {
    super(url, protocols, { headers: { Authorization: key } });
  }
}

/** Collects the results of a client that takes a sink. */
const collect = (subscribe) =>
  new Promise((resolve) => {
    const got = [];
    subscribe({
      next: (result) => got.push(result.errors ? failed(result.errors) : result.data),
      error: (error) => resolve([...got, failed(error)]),
      complete: () => resolve([...got, 'complete']),
    });
  });

/** What a client reports as an error. */
function failed(error) {
  const first = Array.isArray(error) ? error[0] : error;
  return `error: ${first.message ?? first}`;
}

const clients = {
  'graphql-ws': (path) => {
    const client = createClient({ url: `ws://${gateway}${path}`, webSocketImpl: Keyed, retryAttempts: 0, lazy: true });
    return { run: (operation) => collect((sink) => client.subscribe(operation, sink)), close: () => client.dispose() };
  },
  'graphql-sse': (path) => {
    const client = createEvents({ url: `http://${gateway}${path}`, headers: { Authorization: key }, retryAttempts: 0 });
    return { run: (operation) => collect((sink) => client.subscribe(operation, sink)), close: () => client.dispose() };
  },
  'subscriptions-transport-ws': (path) => {
    const client = new SubscriptionClient(`ws://${gateway}${path}`, { reconnect: false }, Keyed);
    return { run: (operation) => collect((sink) => client.request(operation).subscribe(sink)), close: () => client.close() };
  },
};

for (const [name, open] of Object.entries(clients)) {
  for (const api of apis) {
    const client = open(`/${api}/`);
    for (const [operation, request] of Object.entries(operations)) {
      console.log(JSON.stringify({ client: name, api, operation, got: JSON.stringify(await client.run(request)) }));
    }
    await client.close();
  }
}
process.exit();
