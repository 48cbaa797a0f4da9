// graphql-yoga with depth protection in front of the origin: node yoga.mjs PORT ORIGIN
import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import { buildSchema } from 'graphql'
import { createYoga } from 'graphql-yoga'
import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth'
import { buildHTTPExecutor } from '@graphql-tools/executor-http'
import { wrapSchema } from '@graphql-tools/wrap'

const [port, origin] = process.argv.slice(2)
const schema = wrapSchema({
  schema: buildSchema(readFileSync(new URL('schema.graphql', import.meta.url), 'utf8')),
  executor: buildHTTPExecutor({ endpoint: `http://${origin}/graphql` }),
})
const yoga = createYoga({
  schema, logging: false, graphiql: false, landingPage: false,
  graphqlEndpoint: '/bench/graphql', plugins: [maxDepthPlugin({ n: 5 })],
})
createServer(yoga).listen(Number(port), '127.0.0.1')
