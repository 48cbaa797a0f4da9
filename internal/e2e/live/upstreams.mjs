// GraphQL servers, one for each transport of subscriptions. It prints their addresses as
// JSON, and ends with its standard input.
import { createServer } from 'node:http';
import { buildSchema, execute, graphql, parse, subscribe } from 'graphql';
import { createHandler } from 'graphql-sse/lib/use/http';
import { useServer } from 'graphql-ws/use/ws';
import { SubscriptionServer } from 'subscriptions-transport-ws';
import { WebSocketServer } from 'ws';

const schema = buildSchema(`
  type Query { hello(name: String): String }
  type Mutation { add(n: Int!): Int }
  type Subscription { count(to: Int!): Int }
`);
let sum = 0;
const rootValue = {
  hello: ({ name }) => `Hello ${name ?? 'world'}`,
  add: ({ n }) => (sum += n),
  async *count({ to }) {
    for (let n = 1; n <= to; n++) yield { count: n };
  },
};

/** Answers queries and mutations over HTTP with JSON. */
async function answer(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const asked = request.method === 'POST' ? JSON.parse(Buffer.concat(chunks)) : inQuery(request.url);
  const result = await graphql({ schema, rootValue, source: asked.query, variableValues: asked.variables, operationName: asked.operationName });
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(result));
}

/** The parameters of a GET. */
function inQuery(url) {
  const { query, variables, operationName } = Object.fromEntries(new URL(url, 'http://a').searchParams);
  return { query, operationName, variables: variables && JSON.parse(variables) };
}

const transports = {
  'graphql-transport-ws': () => {
    const server = createServer(answer);
    useServer({ schema, roots: { query: rootValue, mutation: rootValue, subscription: rootValue } }, new WebSocketServer({ server }));
    return server;
  },
  'graphql-ws': () => {
    const server = createServer(answer);
    SubscriptionServer.create({ schema, rootValue, execute, subscribe }, { server, path: '/' });
    return server;
  },
  // graphql-sse answers in text/event-stream, and only requests that accept nothing else.
  sse: () => {
    const events = createHandler({ schema, onSubscribe: (_, { query, variables, operationName }) => ({ schema, rootValue, document: parse(query), variableValues: variables, operationName }) });
    return createServer((request, response) => (request.headers.accept === 'text/event-stream' ? events(request, response) : answer(request, response)));
  },
};


process.on('unhandledRejection', (reason) => console.error(reason)); // of a client that left
const addresses = {};
for (const [name, make] of Object.entries(transports)) {
  const server = make();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  addresses[name] = `http://127.0.0.1:${server.address().port}`;
}
console.log(JSON.stringify(addresses));
process.stdin.resume().on('end', () => process.exit());
