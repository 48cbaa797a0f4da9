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
