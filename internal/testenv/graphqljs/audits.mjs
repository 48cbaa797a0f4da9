// A GraphQL server by graphql-http, and its audits of other servers. The first
// line on standard output is the URL of the server; each URL on standard input is
// answered with one line, a JSON array of what the audits found there. It ends
// with its input.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { buildSchema } from 'graphql';
import { auditServer } from 'graphql-http';
import { createHandler } from 'graphql-http/lib/use/http';

const schema = buildSchema(`
  type Query { hello(name: String = "world"): String! }
  type Mutation { shout(text: String!): String! }
`);
const rootValue = {
  hello: ({ name }) => `hello ${name}`,
  shout: ({ text }) => text.toUpperCase(),
};

async function found(url) {
  const results = await auditServer({ url, fetchFn: fetch });
  return results.map(({ id, name, status, reason }) => ({ id, name, status, reason }));
}

const server = createServer(createHandler({ schema, rootValue }));
server.listen(0, '127.0.0.1', async () => {
  console.log(`http://127.0.0.1:${server.address().port}/graphql`);
  for await (const url of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await found(url)));
  }
  server.closeAllConnections();
  server.close();
});
