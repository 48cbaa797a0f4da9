// Answers questions about GraphQL with the reference implementation: one JSON
// object a line on standard input, one on standard output, in the same order.
// It ends with its input. graphqljs.go beside this directory asks.
import { createInterface } from 'node:readline';
import * as graphql from 'graphql';
import { validateSDL } from 'graphql/validation/validate.js';
import { getVariableValues } from 'graphql/execution/values.js';
import { dump } from './dump.mjs';

const maxSchemas = 200;
const schemas = new Map(); // digest → { text, built }, the latest used last

// remember returns the entry of a request's schema, or undefined when its text
// has to be sent again.
function remember({ schema, digest }) {
  const entry = schemas.get(digest) ?? (schema === undefined ? undefined : { text: schema });
  if (entry === undefined) return undefined;
  schemas.delete(digest);
  schemas.set(digest, entry);
  if (schemas.size > maxSchemas) schemas.delete(schemas.keys().next().value);
  return entry;
}

function built(entry) {
  entry.built ??= graphql.buildASTSchema(graphql.parse(entry.text), { assumeValidSDL: true, assumeValid: true });
  return entry.built;
}

const hiding = (request) => ({ hideSuggestions: request.suggestions === false });

function operationOf(document, name) {
  const operations = document.definitions.filter((d) => d.kind === graphql.Kind.OPERATION_DEFINITION);
  const found = name ? operations.find((o) => o.name?.value === name) : operations[0];
  if (found === undefined) throw new Error(`there is no operation ${name ?? ''} in the document`);
  return found;
}

function sdlErrors(text, request) {
  const document = graphql.parse(text);
  let errors = validateSDL(document);
  if (errors.length === 0) {
    errors = graphql.validateSchema(graphql.buildASTSchema(document, { assumeValidSDL: true }));
  }
  // These rules have no option for it.
  if (request.suggestions === false) {
    errors = errors.map((e) => ({ ...e.toJSON(), message: e.message.replace(/ Did you mean [^]*\?$/, '') }));
  }
  return errors;
}

const fullIntrospection = graphql.getIntrospectionQuery({
  descriptions: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
});

// changes compares the request's schema with a later one, its source.
function changes(request, entry) {
  const later = graphql.buildASTSchema(graphql.parse(request.source), { assumeValidSDL: true, assumeValid: true });
  return {
    breaking: graphql.findBreakingChanges(built(entry), later),
    dangerous: graphql.findDangerousChanges(built(entry), later),
  };
}

const operations = {
  parse(request) {
    const document = graphql.parse(request.source);
    return { data: request.dump ? dump(document) : null };
  },
  parseSchema: (request) => operations.parse(request),
  validateSDL: (request) => ({ errors: sdlErrors(request.source, request) }),
  validate(request, entry) {
    const document = graphql.parse(request.source);
    const options = { maxErrors: request.maxErrors ?? 100, ...hiding(request) };
    return { errors: graphql.validate(built(entry), document, graphql.specifiedRules, options) };
  },
  coerce(request, entry) {
    const operation = operationOf(graphql.parse(request.source), request.operationName);
    const options = { maxErrors: request.maxErrors ?? 100, ...hiding(request) };
    const result = getVariableValues(built(entry), operation.variableDefinitions ?? [], request.variables ?? {}, options);
    return { errors: result.errors, data: result.coerced ?? null };
  },
  // Without a source, the whole introspection query is executed. There are no
  // resolvers: fields of the schema itself are null.
  introspect(request, entry) {
    return graphql.executeSync({
      schema: built(entry),
      document: graphql.parse(request.source || fullIntrospection),
      variableValues: request.variables,
      operationName: request.operationName,
    });
  },
  // The variables are an introspection's data.
  clientSDL: (request) => ({ data: graphql.printSchema(graphql.buildClientSchema(request.variables)) }),
  changes: (request, entry) => ({ data: changes(request, entry) }),
};

function answer(request) {
  const operation = operations[request.op];
  if (operation === undefined) return { failure: `there is no operation "${request.op}"` };
  let entry;
  if (request.digest !== undefined) {
    entry = remember(request);
    if (entry === undefined) return { unknownSchema: true };
  }
  try {
    return operation(request, entry);
  } catch (error) {
    if (error instanceof graphql.GraphQLError) return { errors: [error] };
    return { failure: error.stack };
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const request = JSON.parse(line);
  process.stdout.write(JSON.stringify({ id: request.id, ...answer(request) }) + '\n');
}
