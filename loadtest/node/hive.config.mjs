// Hive Gateway with depth protection in front of the origin; see graphql.go.
import { fileURLToPath } from 'node:url'
import { defineConfig } from '@graphql-hive/gateway'
import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth'

export const gatewayConfig = defineConfig({
  proxy: { endpoint: `http://${process.env.ORIGIN}/graphql` },
  schema: fileURLToPath(new URL('schema.graphql', import.meta.url)),
  graphqlEndpoint: '/bench/graphql',
  plugins: () => [maxDepthPlugin({ n: 5 })],
  pollingInterval: 0,
  graphiql: false,
  landingPage: false,
  logging: 'error',
})
