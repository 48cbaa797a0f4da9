// Apollo Server as a gateway of two subgraphs: node apollo-federation.mjs PORT ORIGIN
import { createServer } from 'node:http'
import { ApolloServer, HeaderMap } from '@apollo/server'
import { ApolloGateway, LocalCompose } from '@apollo/gateway'
import { subgraphs } from './subgraphs.mjs'

const [port, origin] = process.argv.slice(2)
const gateway = new ApolloGateway({ supergraphSdl: new LocalCompose({ localServiceList: subgraphs(origin) }) })
const server = new ApolloServer({ gateway, introspection: false, stringifyResult: JSON.stringify })
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
