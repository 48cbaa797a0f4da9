// Composes with the reference: reads an array of arrays of schemas, and writes an array of
// {codes, sdl}. It runs in a directory with the packages @apollo/federation and graphql.
const { createRequire } = require('module')
const from = createRequire(process.cwd() + '/')
const { composeAndValidate } = from('@apollo/federation')
const { parse, printSchema } = from('graphql')

function compose(schemas) {
  try {
    const made = composeAndValidate(
      schemas.map((text, i) => ({ name: String.fromCharCode(97 + i), typeDefs: parse(text) })),
    )
    const codes = (made.errors || []).map((e) => e.extensions?.code || e.message)
    return { codes, sdl: codes.length ? '' : printSchema(made.schema) }
  } catch (e) {
    return { codes: [e.message], sdl: '' }
  }
}

const compositions = JSON.parse(require('fs').readFileSync(0, 'utf8'))
process.stdout.write(JSON.stringify(compositions.map(compose)))
