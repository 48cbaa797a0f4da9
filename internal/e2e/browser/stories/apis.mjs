// APIs are made from what is there, and edited member by member.
import { createServer } from 'node:http';
import { assert, eventually, product, rest, story } from '../harness.mjs';

// What a GraphQL server with one field says of itself, and answers.
const schema = {
  queryType: { name: 'Query' }, mutationType: null, subscriptionType: null, directives: [],
  types: [
    { kind: 'OBJECT', name: 'Query', fields: [{ name: 'hello', args: [], type: { kind: 'SCALAR', name: 'String' }, isDeprecated: false }], interfaces: [] },
    { kind: 'SCALAR', name: 'String' },
    { kind: 'SCALAR', name: 'Boolean' },
  ],
};

/** Serves GraphQL at /graphql and an OpenAPI document at /openapi.json until the test ends. */
async function upstream(t) {
  const server = createServer((request, answer) => {
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      answer.setHeader('Content-Type', 'application/json');
      if (request.method === 'POST') answer.end(JSON.stringify({ data: body.includes('__schema') ? { __schema: schema } : { hello: 'world' } }));
      else answer.end(JSON.stringify({ path: request.url }));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Waits until the gateway answers a call with a status, and returns the answer. */
const answered = (path, status, o = {}) =>
  eventually(`${path} answers ${status}`, async () => {
    const answer = await fetch(product.gateway + path, o);
    const text = await answer.text();
    assert.equal(answer.status, status, text);
    return text;
  });

/** Publishes what is edited on the page, with a reason. */
async function publish(page, reason) {
  await page.keyboard.press('Control+s');
  const sheet = page.getByRole('dialog', { name: /Review/ });
  await sheet.getByLabel('Reason').fill(reason);
  await page.keyboard.press('Control+Enter');
  await sheet.waitFor({ state: 'detached' });
}

story('An API of a GraphQL URL', async ({ t, page, step, signIn, open }) => {
  const server = await upstream(t);
  await signIn();
  await step('the probe finds the schema', async () => {
    await open('/apis/new');
    await page.getByLabel('URL of the upstream').fill(`${server}/graphql`);
    await page.keyboard.press('Enter');
    await page.getByText('A GraphQL server answered.').waitFor();
    assert.equal(await page.getByLabel('Upstream', { exact: false }).and(page.locator('[data-path="proxy.target_url"]')).inputValue(), `${server}/graphql`);
  });
  await step('it is published with a path of its own', async () => {
    await page.getByLabel(/^Name/).fill('Greetings');
    await page.getByLabel(/^Listen path/).fill('/greetings/');
    await page.getByLabel('Callers authenticate by').selectOption('keyless');
    await publish(page, 'from the story');
    await page.getByRole('heading', { level: 1, name: 'Greetings' }).waitFor();
  });
  const at = new URL(page.url()).pathname;
  const call = (query) => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ query }) });
  assert.deepEqual(JSON.parse(await answered('/greetings/', 200, call('{ hello }'))), { data: { hello: 'world' } });
  await answered('/greetings/', 400, call('{ goodbye }'));
  await step('the calls are in its traffic', async () => {
    await open(`${at}/traffic`);
    await page.getByText(/\d+ calls?, of which 1 failed or were refused/).first().waitFor();
  });
  await step('with the operations that ran', async () => {
    const table = page.getByRole('table', { name: 'GraphQL operations' });
    await table.getByRole('row', { name: 'without a name query 1 0 0', exact: true }).waitFor();
    await page.getByText(/^Counted since .+, when the gateways were started\.$/).waitFor();
  });
  await step('and on the page of all traffic', async () => {
    await open('/traffic');
    await page.getByRole('table', { name: 'APIs called most' }).getByRole('link', { name: 'Greetings' }).waitFor();
  });
});

story('An API of an OpenAPI file', async ({ t, page, step, signIn, open }) => {
  const server = await upstream(t);
  const document = { openapi: '3.1.0', info: { title: 'Order service', version: '1' }, servers: [{ url: `${server}/v2/` }], paths: { '/orders': { get: { responses: { 200: { description: 'ok' } } } } } };
  await signIn();
  await step('title and server are taken over', async () => {
    await open('/apis/new');
    await page.getByRole('button', { name: 'An OpenAPI document' }).click();
    await page.getByLabel('or a file').setInputFiles({ name: 'orders.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(document, null, 2)) });
    await page.getByRole('button', { name: 'Take over' }).click();
    assert.equal(await page.getByLabel(/^Name/).inputValue(), 'Order service');
    assert.equal(await page.getByLabel(/^Listen path/).inputValue(), '/order-service/');
    assert.equal(await page.locator('[data-path="proxy.target_url"]').inputValue(), `${server}/v2/`);
  });
  await step('it is published', async () => {
    await page.getByLabel('Callers authenticate by').selectOption('keyless');
    await publish(page, 'from a file');
    await page.getByRole('heading', { level: 1, name: 'Order service' }).waitFor();
  });
  assert.deepEqual(JSON.parse(await answered('/order-service/orders', 200)), { path: '/v2/orders' });
});

story('An API of text with errors', async ({ page, step, signIn, open, allow }) => {
  allow(/status of 400 .*\/api\/apis\/validate/);
  await signIn();
  const editor = page.locator('.cm-content');
  const type = async (definition) => {
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(definition);
  };
  const wrong = `{
  "name": "Text",
  "proxy": { "listen_path": "/text/", "target_url": "ftp://nowhere.example/" },
  "use_keyless": true,
  "global_rate_limit": { "rate": -500, "per": 1 }
}`;
  await step('text that does not parse names its line', async () => {
    await open('/apis/new?from=text');
    await type('{\n  "name": "Text",\n  oops\n}');
    await page.getByText(/Line 3/).first().waitFor();
  });
  await step('both problems are listed with their lines', async () => {
    await type(wrong);
    await page.getByRole('listitem').filter({ hasText: 'Line 3' }).filter({ hasText: 'proxy.target_url' }).waitFor();
    await page.getByRole('listitem').filter({ hasText: 'Line 5' }).filter({ hasText: 'global_rate_limit.rate' }).waitFor();
    assert.ok((await page.locator('.cm-lint-marker-error').count()) >= 2, 'the lines are marked');
  });
  await step('put right, it is published', async () => {
    await type(wrong.replace('ftp://nowhere.example/', product.upstream).replace('-500', '500'));
    await page.getByRole('listitem').filter({ hasText: 'Line' }).first().waitFor({ state: 'detached' });
    await publish(page, 'from text');
    await page.getByRole('heading', { level: 1, name: 'Text' }).waitFor();
  });
  await answered('/text/', 200);
  await step('two errors in a published definition mark the field and its tab', async () => {
    await page.getByRole('link', { name: 'All members' }).click();
    await editor.waitFor();
    const now = await editor.evaluate((content) => content.cmTile?.view?.state.doc.toString() ?? content.innerText);
    assert.match(now, /"listen_path"/);
    await type(now.replace(product.upstream, 'ftp://nowhere.example').replace(/"rate": 500\b/, '"rate": -500'));
    const tabs = page.getByRole('navigation', { name: 'Parts of Text' });
    await tabs.getByRole('link', { name: /Routing.*1 problem/ }).waitFor();
    await tabs.getByRole('link', { name: /Limits.*1 problem/ }).waitFor();
    assert.equal(await page.locator('.cm-lint-marker-error').count(), 2, 'two lines are marked');
  });
  await step('the link of a problem leads to its field', async () => {
    await page.getByRole('button', { name: 'proxy.target_url' }).click();
    const field = page.locator('[data-path="proxy.target_url"]');
    await field.waitFor();
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
  });
});

story('Members of others stay', async ({ page, step, signIn, open }) => {
  const text = `{
   "x-owner": {"team": "blue", "pager": 12345678901234567890},
   "name": "Foreign",
   "api_id": "foreign",
   "proxy": {
      "target_url": "${product.upstream}", "listen_path": "/foreign/", "strip_listen_path": true,
      "x-note": ["kept", 1.50, null]
   },
   "use_keyless": true,
   "global_rate_limit": {"per": 60, "rate": 100, "x-why": "the contract"}
}`;
  const send = (method, path, body, headers = {}) => fetch(product.url + path, { method, headers: { Authorization: product.key, 'Content-Type': 'application/json', ...headers }, body });
  const made = await send('POST', '/api/apis', text);
  assert.ok(made.ok, await made.text());
  const before = await (await send('GET', '/api/apis/foreign')).text();
  await signIn();
  await step('one number is changed', async () => {
    await open('/apis/foreign/limits');
    const rate = page.locator('[data-path="global_rate_limit.rate"]');
    await rate.fill('250');
    await page.keyboard.press('Control+s');
    const sheet = page.getByRole('dialog', { name: /Review/ });
    const rows = sheet.getByRole('table').getByRole('row');
    assert.equal(await rows.count(), 2, 'a head and one member');
    await rows.filter({ hasText: 'global_rate_limit.rate' }).filter({ hasText: '100' }).filter({ hasText: '250' }).waitFor();
    await page.keyboard.press('Control+Enter');
    await sheet.waitFor({ state: 'detached' });
  });
  const after = await (await send('GET', '/api/apis/foreign')).text();
  const strip = (definition) => definition.replace(/"(updated_at|version)"\s*:\s*("[^"]*"|\d+),?/g, '');
  const compact = (definition) => definition.replace(/\s+/g, '');
  assert.equal(compact(strip(after)), compact(strip(before)).replace('"rate":100', '"rate":250'));
  assert.match(after, /12345678901234567890/);
  assert.match(after, /1\.50/);
  await step('a second change in the same page is published without a conflict', async () => {
    await page.locator('[data-path="global_rate_limit.rate"]').fill('300');
    await publish(page, 'again');
  });
  assert.match(await (await send('GET', '/api/apis/foreign')).text(), /"rate":\s*300/);
});
