// A change is run against recorded requests before it is published.
// setting: gateway.samples_per_second=1000
// setting: usage.flush=200ms
import { assert, eventually, newUser, product, rest, story } from '../harness.mjs';

const sheetOf = (page) => page.getByRole('dialog', { name: /^Review/ });
const fieldOf = (page, path) => page.locator(`[data-path="${path}"]`);

/** Calls the API with an operation of some levels and returns the status. */
async function ask(key, query) {
  const answer = await fetch(`${product.gateway}/graph/`, { method: 'POST', headers: { Authorization: key, 'Content-Type': 'application/json' }, body: JSON.stringify({ query }) });
  await answer.text();
  return answer.status;
}

const flat = '{ a { b } }';
const deep = '{ a { a { a { a { b } } } } }';

/** Opens the review of a lowered depth. */
async function lower(page, open) {
  await open('/policies/graph');
  await fieldOf(page, 'max_query_depth').fill('3');
  await page.keyboard.press('Control+s');
  await sheetOf(page).getByRole('heading', { name: 'Replay' }).waitFor();
}

story('A lowered limit is run against recorded requests', async ({ page, step, signIn, open }) => {
  const schema = 'type Query { a: A } type A { a: A b: String }';
  await rest('POST', '/api/apis', {
    api_id: 'graph', name: 'graph', proxy: { listen_path: '/graph/', target_url: product.upstream, strip_listen_path: true }, graphql: { enabled: true, execution_mode: 'proxyOnly', schema },
  });
  await rest('POST', '/api/portal/policies', {
    id: 'graph', name: 'graph', rate: 1000, per: 60, max_query_depth: 10, access_rights: { graph: { api_id: 'graph', api_name: 'graph', versions: ['Default'] } },
  });
  const made = await rest('POST', '/api/keys', { alias: 'mobile app', apply_policies: ['graph'] });
  const key = made.key_id ?? made.key;
  await signIn(await newUser('editor'));
  page.on('dialog', (asked) => void asked.accept());
  await step('nothing is recorded yet', async () => {
    await lower(page, open);
    await sheetOf(page).getByText('gateway.samples_per_second').waitFor();
    await sheetOf(page).getByRole('button', { name: 'Back' }).click();
    await page.getByRole('button', { name: 'Discard' }).first().click();
  });
  await eventually('the key is known', async () => assert.equal(await ask(key, flat), 200));
  for (let n = 0; n < 2; n++) assert.equal(await ask(key, deep), 200);
  await eventually('the deep requests are recorded', async () => {
    const run = await rest('POST', '/api/config/replay', { policies: [{ id: 'graph', name: 'graph', rate: 1000, per: 60, max_query_depth: 3, access_rights: { graph: { api_id: 'graph', api_name: 'graph', versions: ['Default'] } } }] }, { status: 201 });
    await eventually('the run ends', async () => assert.equal((await rest('GET', `/api/config/replay/${run.id}`)).state, 'done'));
    assert.equal((await rest('GET', `/api/config/replay/${run.id}`)).result.newly_refused.samples, 2);
  });
  await step('the change would refuse the deep ones, of a key that is named', async () => {
    await lower(page, open);
    await sheetOf(page).getByRole('button', { name: 'Run against recorded requests' }).click();
    await sheetOf(page).getByText(/The change would refuse 2 of .* recorded requests, from one key\./).waitFor();
    const byKey = sheetOf(page).getByRole('table', { name: 'Would be refused: by key' });
    await byKey.getByRole('row', { name: /mobile app 2/ }).waitFor();
    await sheetOf(page).getByRole('table', { name: 'Would be refused: by rule' }).getByText('max_query_depth 3').waitFor();
  });
  assert.equal((await rest('GET', '/api/portal/policies/graph')).max_query_depth, 10);
});

// After the story above: requests are recorded.
story('Replay before the review', async ({ page, step, signIn, open }) => {
  await signIn(await newUser('editor'));
  page.on('dialog', (asked) => void asked.accept());
  const run = () => page.getByRole('button', { name: 'Run against recorded requests' }).click();
  const field = (name) => page.getByRole('combobox', { name, exact: true });
  await step('without a change, callers have the policy alone', async () => {
    await open('/policies/graph/replay');
    await page.getByRole('heading', { level: 2, name: 'Replay' }).waitFor();
    await run();
    await page.getByText(/With policy graph alone, callers would be refused none of .* recorded requests/).waitFor();
    await field('Callers').selectOption('own');
    await page.getByText(/The draft changes nothing yet/).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Run against recorded requests' }).isDisabled());
  });
  await step('a draft is run with the rights that callers have', async () => {
    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await fieldOf(page, 'max_query_depth').fill('3');
    await page.getByRole('link', { name: 'Replay', exact: true }).click();
    await field('API').selectOption('graph');
    await field('Recorded').selectOption({ label: 'in the last hour' });
    await run();
    await page.getByText(/The change would refuse 2 of .* recorded requests, from one key\./).waitFor();
    await page.getByRole('table', { name: 'Would be refused: by key' }).getByRole('row', { name: /mobile app 2/ }).waitFor();
  });
  await step('a phone shows the tab', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
  });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('button', { name: 'Discard' }).first().click();
  await step('a new policy is run as if callers had it', async () => {
    await open('/policies/new');
    await fieldOf(page, 'name').fill('Small');
    await fieldOf(page, 'max_query_depth').fill('3');
    await page.getByRole('combobox', { name: 'APIs', exact: true }).fill('graph');
    await page.getByRole('option', { name: /^graph/ }).click();
    await page.keyboard.press('Control+s');
    const sheet = sheetOf(page);
    await sheet.getByText('No key has this policy yet.').waitFor();
    await sheet.getByRole('button', { name: 'Run against recorded requests' }).click();
    await sheet.getByText(/With policy new-policy alone, callers would be refused 2 of .* recorded requests, from one key\./).waitFor();
    await sheet.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('button', { name: 'Discard' }).first().click();
  });
  await rest('POST', '/api/apis', { api_id: 'wide', name: 'wide', use_keyless: true, proxy: { listen_path: '/wide/', target_url: product.upstream } });
  await eventually('the API is served', async () => assert.equal((await fetch(`${product.gateway}/wide/`)).status, 200));
  assert.equal((await fetch(`${product.gateway}/wide/deep/x`)).status, 200);
  await eventually('a request is recorded', async () => {
    const { id } = await rest('POST', '/api/config/replay?api=wide', { apis: [{ api_id: 'deep', name: 'deep', proxy: { listen_path: '/wide/deep/', target_url: product.upstream } }] }, { status: 201 });
    await eventually('the run ends', async () => assert.equal((await rest('GET', `/api/config/replay/${id}`)).state, 'done'));
    assert.equal((await rest('GET', `/api/config/replay/${id}`)).result.newly_refused.samples, 1);
  });
  await step('a new API takes requests of another', async () => {
    await open('/apis/new?from=text');
    await page.locator('.cm-content').first().click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(JSON.stringify({ name: 'Deep', proxy: { listen_path: '/wide/deep/', target_url: product.upstream }, active: true }, undefined, 2));
    await page.keyboard.press('Control+s');
    const sheet = sheetOf(page);
    await sheet.getByText('Gained: the API is served at /wide/deep/').waitFor();
    await sheet.getByRole('button', { name: 'Run against recorded requests' }).click();
    await sheet.getByText(/The change would refuse 1 of .* recorded requests\./).waitFor();
    await sheet.getByRole('table', { name: 'Would be refused: by rule' }).getByText('auth_missing').waitFor();
    await sheet.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('button', { name: 'Discard' }).first().click();
  });
});
