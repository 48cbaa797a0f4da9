// Answers with the reference: reads {subgraphs, requests}, and writes an array of responses.
// It runs in a directory with the packages @apollo/gateway and graphql.
const { createRequire } = require('module')
const from = createRequire(process.cwd() + '/')
const { ApolloGateway, RemoteGraphQLDataSource } = from('@apollo/gateway')
const { parse } = from('graphql')

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

async function main() {
  const { subgraphs, requests } = JSON.parse(require('fs').readFileSync(0, 'utf8'))
  const gateway = new ApolloGateway({
    localServiceList: subgraphs.map((s) => ({ name: s.name, url: s.url, typeDefs: parse(s.sdl) })),
    buildService: ({ url }) => new RemoteGraphQLDataSource({ url }),
    logger: quiet,
  })
  const { executor } = await gateway.load()
  const responses = []
  for (const { query, variables } of requests) {
    const document = parse(query)
    const { data, errors } = await executor({
      document,
      source: query,
      queryHash: query,
      operationName: undefined,
      operation: document.definitions[0],
      request: { query, variables, http: { headers: new Map(), method: 'POST', url: '/' } },
      context: {},
      metrics: {},
      logger: quiet,
      schema: gateway.schema,
      cache: { get: async () => undefined, set: async () => {}, delete: async () => {} },
    })
    responses.push({ data: data ?? null, errors })
  }
  await gateway.stop()
  process.stdout.write(JSON.stringify(responses))
}

main()
