// Supergraphs and data graphs: composed, attached, tried, and their plans drawn.
import { createServer } from 'node:http';
import { assert, eventually, newUser, product, rest, story } from '../harness.mjs';

async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
}

/** Replaces the text of an editor. */
async function write(page, name, text) {
  await page.getByRole('group', { name, exact: true }).locator('.cm-content').click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete'); // what the browser writes over a coloured text has a style, which the policy forbids
  await page.keyboard.insertText(text);
}

/** Publishes what is edited on the page. */
async function publish(page) {
  await page.keyboard.press('Control+s');
  const sheet = page.getByRole('dialog', { name: /Review/ });
  await sheet.getByRole('button', { name: 'Publish' }).click();
  await sheet.waitFor({ state: 'detached' });
}

/** Looks at a page in the dark and on a phone. */
async function looks(page, step, what, ready) {
  await step(`in the dark: ${what}`, async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await ready();
  });
  await step(`on a phone: ${what}`, async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await ready();
    await fits(page);
  });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
}

/** Serves users and their todos by REST until the test ends. */
async function services(t) {
  const server = createServer((request, answer) => {
    const [, , id, list] = request.url.split('/');
    answer.setHeader('Content-Type', 'application/json');
    answer.end(JSON.stringify(list ? [{ title: `of ${id}` }] : { data: { id, name: `user ${id}` } }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

const users = 'type Query {\n  me: User\n}\n\ntype User @key(fields: "id") {\n  id: ID!\n  name: String\n  level: Level\n}\n\nenum Level {\n  LOW\n  HIGH\n}\n';
const reviews = 'extend type User @key(fields: "id") {\n  id: ID! @external\n  reviews: [Review]\n}\n\ntype Review {\n  text: String\n  level: Level\n}\n\nenum Level {\n  LOW\n}\n';

const subgraph = (id, sdl) =>
  rest('POST', '/api/apis', {
    api_id: id,
    name: id,
    active: true,
    use_keyless: true,
    proxy: { listen_path: `/${id}/`, target_url: product.upstream },
    graphql: { enabled: true, execution_mode: 'subgraph', subgraph: { sdl } },
  });

story('A supergraph is composed of two APIs', async ({ page, step, signIn, open }) => {
  await subgraph('users', users);
  await subgraph('reviews', reviews);
  await signIn(await newUser('editor'));
  const problems = page.getByRole('list', { name: 'Problems of the composition' });
  await step('it begins without subgraphs', async () => {
    await open('/apis/new');
    await page.getByRole('button', { name: 'Subgraphs', exact: true }).click();
    await page.getByRole('heading', { level: 2, name: 'No subgraphs' }).waitFor();
    await page.getByLabel('Name (required)').fill('people');
    await page.getByLabel('Listen path').fill('/people/');
    await page.getByLabel('Callers authenticate by').selectOption('keyless');
  });
  await step('APIs of the organisation are picked', async () => {
    for (const name of ['users', 'reviews']) {
      await page.getByRole('combobox', { name: 'From an API' }).fill(name);
      await page.getByRole('option', { name: new RegExp(`^${name}`) }).click();
      await page.getByRole('button', { name: new RegExp(`^${name} API ${name}`), expanded: true }).waitFor();
    }
  });
  await step('the conflict has a code and its places', async () => {
    const problem = problems.getByRole('listitem').filter({ hasText: 'ENUM_MISMATCH' });
    await problem.getByText('Level.HIGH', { exact: true }).waitFor();
    await problem.getByRole('button', { name: 'reviews, line 11' }).click();
    await page.getByRole('group', { name: 'Schema of reviews', exact: true }).locator('.cm-lint-marker-error').waitFor();
    await page.getByText(/^11: ENUM_MISMATCH: /).waitFor();
    await page.getByText('is not possible while there are problems').waitFor();
  });
  await step('what cannot be composed is refused at its place', async () => {
    await page.getByText(/graphql\.supergraph\.subgraphs\[\d\]\.sdl/).first().waitFor();
  });
  await step('a copy of the schema is mended', async () => {
    await page.getByRole('button', { name: 'Edit a copy' }).click();
    await write(page, 'Schema of reviews', reviews.replace('  LOW\n}', '  LOW\n  HIGH\n}'));
    await page.getByText('The subgraphs can be composed', { exact: true }).waitFor();
    await page.getByText('The API has another schema by now').waitFor();
    await problems.waitFor({ state: 'detached' });
  });
  await step('the merged schema is searched', async () => {
    await page.getByText('4 of 4 definitions').waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('reviews');
    await page.getByText('1 of 4 definitions').waitFor();
    await page.getByRole('group', { name: 'Merged schema', exact: true }).getByText('reviews: [Review]').waitFor();
  });
  await step('a faulty URL is marked at its field', async () => {
    const url = page.locator('[data-path="graphql.supergraph.subgraphs[1].url"]');
    await url.fill('nowhere');
    await page.locator('[data-path="graphql.supergraph.subgraphs[1].url"][aria-invalid=true]').waitFor();
    await url.fill('');
    await page.locator('[data-path="graphql.supergraph.subgraphs[1].url"]:not([aria-invalid])').waitFor();
  });
  await step('it is published, and says since when it is as it is', async () => {
    await publish(page);
    await page.getByRole('heading', { level: 1, name: 'people' }).waitFor();
    await page.getByRole('link', { name: 'Subgraphs' }).click();
    await page.getByText(/^unchanged since/).waitFor();
    await page.getByText('leaves the schema of clients as it is').waitFor();
    const { graphql } = await rest('GET', `/api${new URL(page.url()).pathname.replace(/\/subgraphs$/, '')}`);
    assert.match(graphql.supergraph.merged_sdl, /reviews: \[Review\]/);
  });
  await step('a subgraph from a URL needs a schema', async () => {
    await page.getByLabel('From a URL').fill('https://orders.example.com/graphql');
    await page.getByRole('button', { name: 'Add', exact: true }).first().click();
    await page.getByRole('button', { name: /^orders https/, expanded: true }).waitFor();
    await problems.getByText('INVALID_SUBGRAPH').waitFor();
    await write(page, 'Schema of orders', 'type Query {\n  order: Order\n}\n\ntype Order {\n  total: Int\n}\n');
    await page.getByText('changes the schema of clients').waitFor();
    await page.getByLabel('Show what publishing changes').check();
    await page.getByRole('group', { name: 'Merged schema', exact: true }).locator('.cm-changedLine').first().waitFor();
  });
  await step('the schema of a subgraph is written at its API', async () => {
    const other = await page.context().newPage();
    await other.goto(`${product.url}/apis/reviews/schema`);
    await write(other, 'Schema for supergraphs', 'type Query {\n  a: Nope\n}\n');
    await other.getByText(/INVALID_SUBGRAPH: .*Nope/).last().waitFor();
    await other.getByRole('group', { name: 'Schema for supergraphs', exact: true }).locator('.cm-lint-marker-error').waitFor();
    await other.close({ runBeforeUnload: false });
  });
  await looks(page, step, 'a supergraph', () => page.getByText('The subgraphs can be composed', { exact: true }).waitFor());
});

const schema = 'type Query {\n  user(id: ID!): User\n}\n\ntype User {\n  id: ID!\n  name: String\n  todos: [Todo]\n}\n\ntype Todo {\n  title: String\n}\n';

story('A data graph joins REST services, and its plan is drawn', async ({ t, page, step, signIn, open }) => {
  const server = await services(t);
  await signIn(await newUser('editor'));
  const sources = page.getByRole('region', { name: 'Query' });
  await step('a schema without sources says what lacks', async () => {
    await open('/apis/new?from=graph');
    await page.getByLabel('Name (required)').fill('graph');
    await page.getByLabel('Listen path').fill('/graph/');
    await page.getByLabel('Callers authenticate by').selectOption('keyless');
    await page.getByRole('heading', { level: 2, name: 'No data sources' }).waitFor();
    await write(page, 'Schema', schema);
    await sources.getByText('Needs a source.').waitFor();
  });
  await step('a REST source takes the field', async () => {
    await page.getByRole('button', { name: 'Add a REST source' }).click();
    await sources.getByText('Needs a source.').waitFor({ state: 'detached' });
    await page.getByText('{{.arguments.id}}', { exact: true }).waitFor();
  });
  const url = page.locator('[data-path="graphql.engine.data_sources[0].config.url"]');
  await step('a variable that does not exist is marked at the field', async () => {
    await url.fill(`${server}/users/{{.arguments.nope}}`);
    await page.getByText(/names \{\{\.arguments\.nope\}\}/).last().waitFor();
    assert.equal(await url.getAttribute('aria-invalid'), 'true');
    await url.fill(`${server}/users/{{.arguments.id}}`);
    await page.locator('[data-path="graphql.engine.data_sources[0].config.url"]:not([aria-invalid])').waitFor();
  });
  await step('its value is mapped', async () => {
    await page.getByRole('button', { name: 'Mapping of Query.user: member user' }).click();
    await page.getByRole('button', { name: 'Add: Members on the way to the value' }).click();
    await page.getByLabel('Members on the way to the value, entry 1', { exact: true }).fill('data');
    await page.getByRole('button', { name: 'Mapping of Query.user: data' }).waitFor();
  });
  await step('it is published', async () => {
    await publish(page);
    await page.getByRole('heading', { level: 1, name: 'graph' }).waitFor();
    await page.getByRole('link', { name: 'Data sources' }).click();
    await page.getByRole('button', { name: /^user REST/ }).waitFor();
  });
  await step('a second source has a field below', async () => {
    await page.getByRole('button', { name: 'Add a REST source' }).click();
    await page.locator('[data-path="graphql.engine.data_sources[1].name"]').fill('todos');
    await page.getByRole('combobox', { name: 'Source of User.todos' }).selectOption('todos');
    await page.getByText('{{.object.id}}', { exact: true }).waitFor();
    await page.locator('[data-path="graphql.engine.data_sources[1].config.url"]').fill(`${server}/users/{{.object.id}}/todos`);
    await page.getByRole('button', { name: 'Mapping of User.todos: member todos' }).click();
    await page.getByLabel('The value is all of it').check();
    await page.getByRole('button', { name: 'Open the playground' }).click();
    await page.getByText('Your draft is not published').waitFor();
  });
  const third = page.getByRole('listitem').filter({ has: page.locator('[data-path="graphql.engine.data_sources[2]"]') });
  const removed = async () => {
    await third.getByRole('button', { name: /^Remove/ }).first().click();
    await page.locator('[data-path="graphql.engine.data_sources[2]"]').waitFor({ state: 'detached' });
  };
  await step('a message broker has topics', async () => {
    await page.getByRole('button', { name: 'Add a message broker' }).click();
    await page.getByText('is required: at least one topic').first().waitFor();
    await page.getByRole('button', { name: 'Add: Topics' }).click();
    await page.getByLabel('Topics, entry 1', { exact: true }).fill('users');
    await page.getByRole('button', { name: 'Add: Addresses of the message broker' }).click();
    await page.getByLabel('Addresses of the message broker, entry 1', { exact: true }).fill('kafka://broker.example');
    await page.getByLabel('Consumer group').fill('g');
    await page.getByLabel('Sharing of partitions').selectOption('BalanceStrategySticky');
    await page.getByRole('checkbox', { name: 'Credentials' }).or(page.getByRole('switch', { name: 'Credentials' })).check();
    await page.getByLabel('Password', { exact: true }).fill('{secret:broker-password}');
    await page.getByText('is required beside password').first().waitFor();
  });
  await looks(page, step, 'a message broker', () => page.getByLabel('Sharing of partitions').waitFor());
  await step('it is removed again', removed);
  await step('a GraphQL source has an operation of its own', async () => {
    await page.getByRole('button', { name: 'Add a GraphQL source' }).click();
    await page.getByLabel('Protocol of subscriptions').waitFor();
    await page.getByLabel('An operation of its own').check();
    await page.getByText('is required where has_operation is true').first().waitFor();
    await write(page, 'Operation', 'query Name($id: ID!) { name(of: $id) }');
    await page.locator('[data-path="graphql.engine.data_sources[2].config.variables"]').fill('id');
    await page.getByRole('button', { name: 'Add: Variables of the operation' }).click();
    await page.locator('[data-path="graphql.engine.data_sources[2].config.variables[\\"id\\"]"]').fill('{{.object.id}}');
    await page.getByRole('combobox', { name: 'Source of User.name' }).selectOption({ index: 3 });
    await page.getByText('{{.object.id}}', { exact: true }).waitFor();
  });
  await step('it is removed', async () => {
    await page.getByRole('button', { name: /^Remove/ }).last().waitFor();
    await removed();
    await page.getByRole('button', { name: /^todos REST/ }).click();
  });
  await looks(page, step, 'a data graph', () => page.getByText('Your draft is not published').waitFor());
  const plan = page.getByRole('figure', { name: /Query plan/ });
  await step('the playground draws the plan', async () => {
    await publish(page);
    await eventually('the gateway has the second source', async () => {
      const answer = await fetch(`${product.gateway}/graph/`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ query: '{ user(id: "7") { todos { title } } }' }) });
      assert.match(await answer.text(), /"of 7"/);
    });
    const query = page.getByRole('textbox', { name: 'Query' });
    await query.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{ user(id: "7") { name todos { title } } }');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await plan.getByRole('img', { name: '1. user for user, at once; 2. todos for user.todos, after request 1' }).waitFor();
    await page.getByText('"of 7"').waitFor();
    await plan.getByText('As a list').click();
    await plan.getByRole('listitem').filter({ hasText: 'todos for user.todos, after request 1' }).waitFor();
  });
  await step('an explanation draws it too', async () => {
    await open('/why');
    await page.getByLabel('Method').selectOption('POST');
    await page.getByLabel(/^URL or path/).fill('/graph/');
    await page.getByLabel('Header lines').fill('Content-Type: application/json');
    await page.getByLabel('Body').fill('{"query": "{ user(id: 7) { todos { title } } }"}');
    await page.getByRole('button', { name: 'Explain' }).click();
    await plan.getByRole('img', { name: /2\. todos for user\.todos, after request 1/ }).waitFor();
  });
  await looks(page, step, 'a plan', () => plan.waitFor());
});

story('Viewers see graphs and change none', async ({ page, step, signIn, open }) => {
  await rest('POST', '/api/apis', {
    api_id: 'seen',
    name: 'seen',
    active: true,
    use_keyless: true,
    proxy: { listen_path: '/seen/', target_url: '' },
    graphql: { enabled: true, execution_mode: 'executionEngine', schema, engine: { data_sources: [{ kind: 'REST', name: 'users', root_fields: [{ type: 'Query', fields: ['user'] }], config: { url: 'http://users.example/{{.arguments.id}}' } }] } },
  });
  await signIn(await newUser('viewer'));
  await step('sources', async () => {
    await open('/apis/seen/sources?open=0');
    await page.locator('[data-path="graphql.engine.data_sources[0].name"][disabled]').waitFor();
    assert.equal(await page.getByRole('button', { name: /^(Remove|Add)/ }).count(), 0);
  });
});
