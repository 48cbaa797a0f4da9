import { assert, product, rest, story } from '../harness.mjs';

const operations = ['list', 'search', 'totals', 'export', 'prices', 'stock', 'labels', 'returns'];
const document = {
  openapi: '3.0.3',
  info: { title: 'Orders', version: '1' },
  paths: {
    ...Object.fromEntries(operations.map((name) => [`/${name}`, { get: { operationId: name, summary: `Get ${name}`, responses: { 200: { description: 'ok' } } } }])),
    '/item/{id}': { get: { operationId: 'getItem', summary: 'Get an item', parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }], responses: { 200: { description: 'ok' } } } },
  },
};
const schema = 'type Query { country: Country secret: Int } type Country { name: String neighbour: Country }';

/** Makes two APIs with one plan, and entries of the catalogue with a reference. */
async function offer() {
  if ((await rest('GET', '/api/portal/policies?q=gold')).Data?.some((one) => one.id === 'gold')) return;
  const common = { use_keyless: false, auth: { auth_header_name: 'Authorization' } };
  await rest('POST', '/api/apis', { ...common, api_id: 'orders', name: 'Orders', proxy: { listen_path: '/orders/', target_url: product.upstream, strip_listen_path: true } });
  await rest('POST', '/api/apis', { ...common, api_id: 'graph', name: 'Countries', proxy: { listen_path: '/graph/', target_url: product.upstream }, graphql: { enabled: true, execution_mode: 'proxyOnly', schema } });
  await rest('POST', '/api/portal/policies', {
    id: 'gold', name: 'Gold', state: 'active', rate: 1000, per: 60, quota_max: 1000, quota_renewal_rate: 3600, max_query_depth: 3,
    access_rights: { orders: { api_id: 'orders', versions: ['Default'] }, graph: { api_id: 'graph', versions: ['Default'], restricted_types: [{ name: 'Query', fields: ['secret'] }] } },
  });
  for (const [id, name, kind, text] of [['orders', 'Orders', 'openapi', JSON.stringify(document)], ['graph', 'Countries', 'graphql', schema]]) {
    const { Message: documentation } = await rest('POST', '/api/portal/documentation', { api_id: id, name, doc_type: kind, documentation: Buffer.from(text).toString('base64') });
    await rest('POST', '/api/portal/catalogue/entries', { id, name, show: true, api_id: id, policy_id: 'gold', documentation, short_description: 'All of them.', long_description: '## What it is\n\nAll **orders**.' });
  }
}

/** The text of the newest letter to an address that has something. */
async function letter(to, has) {
  for (;;) {
    const { Data } = await rest('GET', `/api/portal/mailbox?page_size=100&q=${encodeURIComponent(to)}`);
    for (const one of Data) {
      const { text } = await rest('GET', `/api/portal/mailbox/${one.id}`);
      if (text.includes(has)) return text;
    }
  }
}

/** The status of the gateway's answer to a call with a key. */
const called = async (key) => (await fetch(`${product.gateway}/orders/list`, { headers: { Authorization: key } })).status;

/** Asks until a gateway has what was done. */
async function until(what) {
  while (!(await what()));
}

const visit = (page) => async (path) => {
  await page.goto(product.url + path);
  await page.locator('h1').first().waitFor();
};

async function signUp(page, step, email) {
  const open = visit(page);
  await step('sign up', async () => {
    await open('/portal/');
    await page.getByRole('link', { name: 'Sign up' }).click();
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill('correct horse');
    await page.getByRole('button', { name: 'Sign up' }).click();
    await page.getByText(email).first().waitFor();
  });
  await step('the link of the letter and the password confirm the address', async () => {
    const link = /\/portal\/verify\?token=\w+/.exec(await letter(email, '/verify?token='))[0];
    await open(link);
    await page.getByLabel('Password').fill('correct horse');
    await page.getByRole('main').getByRole('button').click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  });
}

story('The portal without JavaScript', async ({ page, step }) => {
  await offer();
  await rest('PUT', '/api/portal/configuration', { require_key_approval: true });
  const open = visit(page);
  await signUp(page, step, 'ada@example.com');
  await step('a description in Markdown', async () => {
    await open('/portal/apis/orders');
    await page.getByRole('heading', { name: 'What it is' }).waitFor();
    await page.locator('strong', { hasText: 'orders' }).waitFor();
  });
  await step('access is requested', async () => {
    await page.getByRole('link', { name: 'Request access' }).click();
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByRole('cell', { name: 'pending' }).waitFor();
  });
  const { Data } = await rest('GET', '/api/portal/requests?state=pending');
  const { RawKey: first } = await rest('PUT', `/api/portal/requests/approve/${Data[0].id}`);
  assert.ok((await letter('ada@example.com', first)).includes(first), 'the letter has the key');
  await step('the request is approved, and the key works', async () => {
    await open('/portal/requests');
    await page.getByRole('cell', { name: 'approved' }).waitFor();
    await until(async () => (await called(first)) === 200);
  });
  await step('the operation is tried with a form', async () => {
    await open('/portal/apis/orders/docs/getItem');
    await page.getByRole('textbox', { name: 'id' }).fill('7');
    await page.getByRole('button', { name: 'Send the call' }).click();
    await page.getByRole('heading', { name: /Answer.*200/ }).waitFor();
    await page.getByText('origin /item/7').waitFor();
  });
  let key;
  await step('a rotated key is shown once', async () => {
    await open('/portal/keys');
    await page.getByRole('main').getByRole('link').first().click();
    await page.getByLabel('The present one stays valid for').selectOption('0s');
    await page.getByRole('button', { name: 'Rotate the key' }).click();
    await page.getByRole('heading', { name: 'Keep this now' }).waitFor();
    key = (await page.locator('#secret').innerText()).trim();
    assert.notEqual(key, first);
    await until(async () => (await called(key)) === 200);
    await until(async () => (await called(first)) >= 400);
  });
  await step('afterwards no page has it', async () => {
    await page.getByRole('link', { name: 'I have stored it' }).click();
    await page.getByRole('heading', { level: 1, name: /^Key/ }).waitFor();
    assert.ok(!(await page.content()).includes(key));
  });
  await step('the key is revoked', async () => {
    await page.getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByText('The key was revoked').waitFor();
    await until(async () => (await called(key)) >= 400);
  });
  await step('the playground says what it needs', async () => {
    await rest('PUT', '/api/portal/configuration', { require_key_approval: false });
    await open('/portal/request/gold');
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByRole('heading', { name: 'Keep this now' }).waitFor();
    await open('/portal/apis/graph/play');
    // Switched off by the debugger, scripts leave <noscript> unseen; browsers show it.
    assert.match(await page.locator('noscript').textContent(), /The playground needs JavaScript[^]*curl '/);
    assert.equal(await page.getByLabel('Call as').isVisible(), false);
  });
}, { context: { javaScriptEnabled: false } });

story('The portal with JavaScript', async ({ page, context, step, signIn, allow }) => {
  await offer();
  await rest('PUT', '/api/portal/configuration', { require_key_approval: false });
  const open = visit(page);
  await signUp(page, step, 'bob@example.com');
  await step('a key at once', async () => {
    await open('/portal/request/gold');
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByRole('heading', { name: 'Keep this now' }).waitFor();
  });
  await step('the reference is filtered', async () => {
    await open('/portal/apis/orders/docs');
    const tree = page.getByRole('navigation', { name: 'Reference' });
    await tree.getByRole('searchbox', { name: 'Filter operations and types' }).fill('item');
    await tree.getByRole('link', { name: /Get list/ }).waitFor({ state: 'hidden' });
    await tree.getByRole('link', { name: /Get an item/ }).click();
    await page.getByRole('heading', { level: 1, name: 'Get an item' }).waitFor();
  });
  await step('an operation is tried with my key', async () => {
    assert.match(await page.getByLabel('Call as').locator('option').innerText(), /^My key \w{4}…\w{4} for Gold$/);
    await page.getByRole('textbox', { name: 'id' }).fill('8');
    await page.getByRole('button', { name: 'Send the call' }).click();
    await page.getByText('origin /item/8').waitFor();
  });
  await playground(page, step, open);
  allow(/status of 400 \(Bad Request\) \(\S*\/api\/portal\/brand\)/);
  const operator = await context.newPage();
  await signIn(undefined, operator);
  await step('a colour that cannot be read is refused, with the nearest that can', async () => {
    await operator.goto(product.url + '/portal-settings');
    await operator.getByRole('textbox', { name: 'Accent on light surfaces', exact: true }).fill('#ffff00');
    await operator.getByRole('button', { name: 'Save the brand' }).click();
    await operator.getByText(/the nearest that has it is #[0-9a-f]{6}/).first().waitFor();
    const nearest = /nearest that has it is (#[0-9a-f]{6})/.exec(await operator.locator('body').innerText())[1];
    await operator.getByRole('textbox', { name: 'Accent on light surfaces', exact: true }).fill(nearest);
    await operator.getByRole('button', { name: 'Save the brand' }).click();
    await until(async () => (await rest('GET', '/api/portal/brand')).accent === nearest);
    await open('/portal/');
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--accent').includes(document.querySelector('link[href*="brand.css"]') ? '#' : 'none')), true);
  });
});

async function playground(page, step, open) {
  const write = async (text) => {
    await page.getByRole('textbox', { name: 'Query' }).click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(text);
  };
  await step('the playground shows what the plan may see', async () => {
    await open('/portal/apis/graph/docs/query.country');
    await page.getByRole('link', { name: 'Open in the playground' }).click();
    await page.getByRole('heading', { level: 1, name: 'Countries playground' }).waitFor();
    await page.getByRole('button', { name: 'Docs' }).click();
    await page.getByRole('button', { name: 'Query', exact: true }).click();
    await page.getByRole('button', { name: 'Country', exact: true }).first().waitFor();
    assert.equal(await page.getByText('secret').count(), 0);
  });
  await step('a call as my key', async () => {
    await write('query { country { name } }');
    await page.getByText(/depth 3 of 3/).waitFor();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('counted', { exact: true }).waitFor();
    await page.getByText('origin /graph/').waitFor();
  });
  await step('a call that is too deep is refused by the rule of the plan', async () => {
    await write('query { country { neighbour { neighbour { name } } } }');
    await page.getByText(/depth 5 of 3/).waitFor();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('depth_limit').first().waitFor();
    await page.getByText(/max_query_depth 3/).waitFor();
    await page.getByText('set by policy gold').waitFor();
  });
}
