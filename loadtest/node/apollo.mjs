// Apollo Server as a gateway of one subgraph, with depth protection, in front of
// the origin: node apollo.mjs PORT ORIGIN
import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import { parse } from 'graphql'
import { ApolloServer, HeaderMap } from '@apollo/server'
import { ApolloGateway, LocalCompose } from '@apollo/gateway'
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth'

const [port, origin] = process.argv.slice(2)
const typeDefs = parse(readFileSync(new URL('schema.graphql', import.meta.url), 'utf8'))
const gateway = new ApolloGateway({
  supergraphSdl: new LocalCompose({ localServiceList: [{ name: 'countries', url: `http://${origin}/graphql`, typeDefs }] }),
})
const server = new ApolloServer({
  gateway, validationRules: [maxDepthRule({ n: 5 })], introspection: false,
  stringifyResult: JSON.stringify, // without a line end, as the others answer
})
await server.start()

async function answer(req, res) {
  const parts = []
  for await (const part of req) parts.push(part)
  const result = await server.executeHTTPGraphQLRequest({
    httpGraphQLRequest: {
      method: req.method, search: '', body: JSON.parse(Buffer.concat(parts).toString()),
      headers: new HeaderMap(Object.entries(req.headers)),
    },
    context: async () => ({}),
  })
  const body = Buffer.from(result.body.string)
  res.writeHead(result.status ?? 200, [...result.headers, ['content-length', body.length]].flat())
  res.end(body)
}

createServer((req, res) => {
  answer(req, res).catch((err) => {
    res.writeHead(500)
    res.end(String(err))
  })
}).listen(Number(port), '127.0.0.1')
