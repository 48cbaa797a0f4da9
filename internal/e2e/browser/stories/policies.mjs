import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after } from 'node:test';
import { assert, product, rest, story } from '../harness.mjs';

const named = (name) => ({ kind: 'SCALAR', name, ofType: null });
const field = (name, type) => ({ name, description: null, args: [], type, isDeprecated: false, deprecationReason: null });
const type = (name, fields) => ({ kind: 'OBJECT', name, description: null, fields, inputFields: null, interfaces: [], enumValues: null, possibleTypes: null });
const scalar = (name) => ({ ...type(name, null), kind: 'SCALAR', interfaces: null });

/** A GraphQL server: a schema with me { id name email }, whose User can lose its email. */
const upstream = { user: ['id', 'name', 'email'], calls: 0 };
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    upstream.calls++;
    const user = { kind: 'OBJECT', name: 'User', ofType: null };
    const types = [type('Query', [field('me', user)]), type('User', [...upstream.user.map((name) => field(name, named('String'))), field('friend', user)]), scalar('String'), scalar('Boolean')];
    const __schema = { queryType: { name: 'Query' }, mutationType: null, subscriptionType: null, types, directives: [] };
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ data: body.includes('__schema') ? { __schema } : { me: { id: '7' } } }));
  });
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
after(() => server.close());
const graphqlURL = `http://127.0.0.1:${server.address().port}/graphql`;
const schema = 'type Query { me: User }\ntype User { id: String name: String email: String friend: User }\n';

/** Makes a GraphQL API that wants keys, and a policy with it. */
async function graphqlAPI(id, policy, { sdl = schema, more = {}, access = {} } = {}) {
  await rest('POST', '/api/apis', { name: id, api_id: id, proxy: { listen_path: `/${id}/`, target_url: graphqlURL, strip_listen_path: true }, auth: { auth_header_name: 'Authorization' }, active: true, graphql: { enabled: true, execution_mode: 'proxyOnly', schema: sdl, ...more } });
  await rest('POST', '/api/portal/policies', { id: policy, name: `Plan ${policy}`, access_rights: { [id]: { api_id: id, api_name: id, ...access.entry } }, ...access.policy });
}

const newKey = (policy, alias = `key of ${policy}`) => rest('POST', '/api/keys', { alias, apply_policies: [policy] });

/** Sends an operation to the gateway. */
async function ask(id, key, query) {
  const answer = await fetch(`${product.gateway}/${id}/`, { method: 'POST', headers: { Authorization: key, 'Content-Type': 'application/json' }, body: JSON.stringify({ query }) });
  return { status: answer.status, id: answer.headers.get('x-request-id'), body: await answer.text() };
}

/** Waits until fn returns something true. */
async function until(what, fn) {
  for (const end = Date.now() + 30_000; ; ) {
    const found = await fn();
    if (found) return found;
    assert.ok(Date.now() < end, `${what} in 30 s`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** Presses Tab until something of this role and name has the focus. */
async function tabTo(page, name) {
  const at = () => page.evaluate(() => document.activeElement?.textContent?.trim());
  for (let n = 0; n < 80; n++) {
    if ((await at()) === name) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not get to ${name}`);
}

story('A field among 3,000 types is restricted by keyboard, and Why names the policy', async ({ page, step, signIn, open }) => {
  const others = Array.from({ length: 3000 }, (_, n) => `type T${n} { id: String next: T${(n + 1) % 3000} }`).join('\n');
  await graphqlAPI('large', 'wide', { sdl: `type Query { me: User t: T0 }\ntype User { id: String name: String email: String }\n${others}\n` });
  const { key } = await newKey('wide');
  await until('the key may call', async () => (await ask('large', key, '{ me { email } }')).status === 200);
  await signIn();
  await step('the palette opens the policy', async () => {
    await open('/');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).waitFor();
    await page.keyboard.type('Plan wide');
    await page.getByRole('option', { name: /Plan wide.*policy/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Plan wide' }).waitFor();
  });
  await step('the tab has all types', async () => {
    await tabTo(page, 'Fields');
    await page.keyboard.press('Enter');
    await page.getByRole('tree', { name: 'Types and fields' }).waitFor();
    await page.getByText(/^3,002 types/).waitFor();
    assert.ok((await page.getByRole('treeitem').count()) < 100, 'rows out of sight are not drawn');
  });
  await step('the filter finds the field, and Space restricts it', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('User.email');
    await page.getByRole('treeitem', { name: /^email/, selected: true }).waitFor();
    await page.keyboard.press('Space');
    await page.getByRole('status').filter({ hasText: 'User.email: restricted' }).waitFor();
    assert.equal(await page.getByRole('treeitem', { name: /^email/ }).getAttribute('aria-checked'), 'false');
  });
  await step('beside it stands how often it was read, and by whom', async () => {
    await page.getByText(/^Read \d+ times? by 1 key since .+, last at /).waitFor();
    await page.getByRole('list', { name: 'Keys that read it most' }).getByRole('listitem').filter({ hasText: /\d+ times?$/ }).waitFor();
  });
  await step('the review names the key, and publishes', async () => {
    await page.keyboard.press('Control+s');
    const review = page.getByRole('dialog', { name: /Review/ });
    await review.getByText(/1 key/).waitFor();
    await review.getByText(/Lost.*User.email/).waitFor();
    await page.keyboard.press('Control+Enter');
    await review.waitFor({ state: 'detached' });
    await page.getByText(/^Published as revision/).waitFor();
  });
  const refused = await until('the query is refused', async () => {
    const answer = await ask('large', key, '{ me { email } }');
    return answer.status === 400 && answer;
  });
  assert.match(refused.body, /email is restricted on type: User/);
  assert.equal((await ask('large', key, '{ me { id } }')).status, 200);
  await step('Why names the policy and leads back to the field', async () => {
    await until('the admin has the refusal', async () => (await fetch(`${product.url}/api/refusals/${refused.id}`, { headers: { Authorization: product.key } })).ok);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).waitFor();
    await page.keyboard.type(refused.id);
    await page.getByRole('option', { name: /Why/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: '400 field_restricted' }).waitFor();
    await tabTo(page, 'Open at this field: policy wide');
  });
  await step('the tree is at the field', async () => {
    await page.keyboard.press('Enter');
    await page.getByRole('treeitem', { name: /^email.*restricted/, selected: true }).waitFor();
    await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'tree');
  });
});

story('The preview of a schema lists what breaks, and applies it', async ({ page, step, signIn, open }) => {
  const operation = 'query Mail { me { email } }';
  await graphqlAPI('people', 'team', {
    more: { trusted_documents: { documents: { [createHash('sha256').update(operation).digest('hex')]: operation } } },
    access: { entry: { restricted_types: [{ name: 'User', fields: ['email'] }] } },
  });
  await signIn();
  upstream.user = ['id', 'name'];
  await step('nothing is stored by the preview', async () => {
    await open('/apis/people/schema');
    await page.getByRole('button', { name: 'Preview the upstream’s schema' }).click();
    await page.getByRole('row', { name: /breaking.*User\.email/ }).waitFor();
    const breaks = page.getByRole('table', { name: 'What breaks' });
    await breaks.getByRole('row', { name: /team.*email/ }).waitFor();
    await breaks.getByRole('row', { name: /trusted_documents/ }).waitFor();
    assert.match((await rest('GET', '/api/apis/people')).graphql.schema, /email/);
  });
  await step('it is applied although rules break', async () => {
    await page.getByRole('button', { name: 'Apply although rules break' }).click();
    await page.getByText('The schema was stored and goes to the gateways.').waitFor();
    assert.doesNotMatch((await rest('GET', '/api/apis/people')).graphql.schema, /email/);
  });
  upstream.user = ['id', 'name', 'email'];
});

story('The playground calls as oneself, as a key and as a policy', async ({ page, step, signIn, open, allow }) => {
  await graphqlAPI('play', 'shallow', { access: { policy: { max_query_depth: 3, quota_max: 50, quota_renewal_rate: 3600 } } });
  const { key_hash: hash, key } = await newKey('shallow', 'acme');
  await until('the key may call', async () => (await ask('play', key, '{ me { id } }')).status === 200);
  const left = async () => (await rest('GET', `/api/keys/${hash}?hashed=true`)).data.quota_remaining;
  await signIn();
  const query = page.getByRole('textbox', { name: 'Query' });
  const write = async (text) => {
    await query.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(text);
  };
  const run = async () => {
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/playground') && answer.request().method() === 'POST');
    await page.getByRole('button', { name: 'Run' }).click();
    await answered;
  };
  await step('without a credential the call is refused', async () => {
    await open('/apis/play/playground');
    await write('{ me { id } }');
    await run();
    await page.getByRole('strong').filter({ hasText: 'auth_missing' }).waitFor();
  });
  await step('as a policy: the meter warns, and the refusal has its steps', async () => {
    await page.getByLabel('Call as').selectOption('policy');
    await page.getByLabel('Policy', { exact: true }).selectOption('shallow');
    await page.getByText('depth 3 of 3').waitFor();
    await write('{ me { friend { id } } }');
    await page.getByText(/depth 4 of 3.*too much/).waitFor();
    await run();
    await page.getByRole('strong').filter({ hasText: 'depth_limit' }).waitFor();
    await page.getByText(/max_query_depth 3.*the call has 4.*policy shallow/).waitFor();
    await page.getByRole('listitem').filter({ hasText: '✓ auth' }).waitFor();
    await page.getByRole('listitem').filter({ hasText: '✗ graphql' }).waitFor();
  });
  const before = await left();
  await step('as a key: the quota is checked and not counted', async () => {
    await page.getByLabel('Call as').selectOption('key');
    await page.getByLabel('Key hash').fill(hash);
    await write('{ me { id } }');
    await run();
    await page.getByText('not counted', { exact: true }).waitFor();
    assert.equal(await left(), before);
  });
  await step('it is counted when that is ticked', async () => {
    await page.getByRole('checkbox', { name: 'Count the call' }).check();
    await run();
    await page.getByText('counted', { exact: true }).waitFor();
    assert.equal(await left(), before - 1);
  });
});

story('The public playground documents what the key may use', async ({ page, step }) => {
  await rest('POST', '/api/apis', {
    name: 'Public', api_id: 'public', proxy: { listen_path: '/public/', target_url: graphqlURL, strip_listen_path: true }, active: true,
    auth: { auth_header_name: 'Authorization', use_param: true, param_name: 'key' }, graphql: { enabled: true, execution_mode: 'proxyOnly', schema, playground: { enabled: true } },
  });
  await rest('POST', '/api/portal/policies', { id: 'no-mail', name: 'No mail', max_query_depth: 3, access_rights: { public: { api_id: 'public', restricted_types: [{ name: 'User', fields: ['email'] }] } } });
  const { key } = await newKey('no-mail');
  await until('the key may call', async () => (await ask('public', key, '{ me { id } }')).status === 200);
  const asked = upstream.calls;
  await step('its documentation has no field that the policy hides', async () => {
    await page.goto(`${product.gateway}/public/playground?key=${key}`);
    await page.getByRole('button', { name: 'Docs' }).click();
    const docs = page.getByRole('region', { name: 'Documentation' });
    await docs.getByRole('button', { name: 'User' }).first().click();
    await docs.getByText('friend').waitFor();
    assert.equal(await docs.getByText('email').count(), 0);
  });
  await step('the meter knows the limit of the policy', async () => {
    await page.getByRole('textbox', { name: 'Query' }).click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('{ me { friend { id } } }');
    await page.getByText(/depth 4 of 3.*too much/).waitFor();
  });
  assert.equal(upstream.calls, asked, 'the upstream is not asked for its schema');
});

story('Several APIs and policies are changed at once', async ({ page, step, signIn, open, allow }) => {
  for (const id of ['many-a', 'many-b']) await graphqlAPI(id, `plan-${id}`, { more: { x_kept: 1.5 } });
  const { key } = await newKey('plan-many-a');
  await until('the key may call', async () => (await ask('many-a', key, '{ me { id } }')).status === 200);
  const selected = async (path, names) => {
    await open(path);
    for (const name of names) await page.getByRole('checkbox', { name: `Select ${name}`, exact: true }).check();
    return page.getByRole('group', { name: `${names.length} selected` });
  };
  const before = (await rest('GET', '/api/config')).revision;
  await signIn();
  await step('disabling says whom it hits, and makes one revision', async () => {
    const bar = await selected('/apis?q=many-', ['many-a', 'many-b']);
    await bar.getByRole('button', { name: 'Disable' }).click();
    const dialog = page.getByRole('dialog', { name: 'Disable: 2 APIs' });
    await dialog.getByText(/1 key may call/).waitFor();
    await dialog.getByText(/Lost: .*switched off/).first().waitFor();
    await dialog.getByLabel('Reason').fill('Maintenance');
    await dialog.getByRole('button', { name: 'Disable' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('row', { name: /many-a.*off/ }).waitFor();
    await page.getByRole('row', { name: /many-b.*off/ }).waitFor();
  });
  assert.equal((await rest('GET', '/api/config')).revision, before + 1);
  assert.equal((await rest('GET', `/api/config/revisions/${before + 1}`)).reason, 'Maintenance');
  await until('the API is gone', async () => (await ask('many-a', key, '{ me { id } }')).status === 404);
  await step('labels are added to policies, and the rest stays', async () => {
    const bar = await selected('/policies?q=Plan plan-many', ['Plan plan-many-a', 'Plan plan-many-b']);
    await bar.getByRole('button', { name: 'Labels…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Labels: 2 policies' });
    await dialog.getByRole('textbox', { name: 'Labels to add, entry 1' }).fill('team=a');
    await dialog.getByRole('button', { name: 'Labels', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('row', { name: /plan-many-b.*team=a/ }).waitFor();
    assert.deepEqual((await rest('GET', '/api/portal/policies/plan-many-a')).tags, ['team=a']);
  });
  await step('the export is a batch that can be applied', async () => {
    const bar = await selected('/apis?q=many-', ['many-a', 'many-b']);
    const [download] = await Promise.all([page.waitForEvent('download'), bar.getByRole('button', { name: 'Export' }).click()]);
    const batch = JSON.parse(readFileSync(await download.path(), 'utf8'));
    assert.deepEqual(batch.apis.map((one) => one.api_id), ['many-a', 'many-b']);
    assert.deepEqual((await rest('POST', '/api/config/apply', { ...batch, dry_run: true })).changes ?? [], []);
  });
  allow(/status of 409/);
  await step('an API that a policy names is not deleted', async () => {
    const bar = await selected('/apis?q=many-', ['many-b']);
    await bar.getByRole('button', { name: 'Delete…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete: 1 API' });
    await dialog.getByText(/Policies name an API that is to be deleted.*plan-many-b/).waitFor();
    await dialog.getByLabel('Type delete to confirm.').fill('delete');
    assert.ok(await dialog.getByRole('button', { name: 'Delete', exact: true }).isDisabled());
  });
  await step('deleting wants a word typed', async () => {
    const bar = await selected('/policies?q=Plan plan-many', ['Plan plan-many-b']);
    await bar.getByRole('button', { name: 'Delete…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete: 1 policy' });
    await dialog.getByText('No key has this policy.').waitFor();
    assert.ok(await dialog.getByRole('button', { name: 'Delete', exact: true }).isDisabled());
    await dialog.getByLabel('Type delete to confirm.').fill('delete');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Plan plan-many-b' }).waitFor({ state: 'detached' });
    await rest('GET', '/api/portal/policies/plan-many-b', undefined, { status: 404 });
  });
  await step('c p begins a policy', async () => {
    await page.keyboard.press('c');
    await page.keyboard.press('p');
    await page.getByRole('heading', { level: 1, name: 'New policy' }).waitFor();
  });
});
