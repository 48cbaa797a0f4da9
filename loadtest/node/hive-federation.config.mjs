// Hive Gateway in front of two subgraphs; see federation.go.
import { defineConfig } from '@graphql-hive/gateway'
import { composeServices } from '@apollo/composition'
import { subgraphs } from './subgraphs.mjs'

const composed = composeServices(subgraphs(process.env.ORIGIN))
if (composed.errors) throw new Error(composed.errors.join('\n'))

export const gatewayConfig = defineConfig({
  supergraph: () => composed.supergraphSdl,
  graphqlEndpoint: '/bench/graphql',
  pollingInterval: 0,
  graphiql: false,
  landingPage: false,
  logging: 'error',
})
