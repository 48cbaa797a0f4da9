// product: --demo
// setting: usage.flush=200ms
// What the README shows. SLUICE_README_SHOTS=dir writes its pictures (make screenshots).
import { setTimeout } from 'node:timers/promises';
import { assert, product, rest, story } from '../harness.mjs';

const call = (path, key, query) =>
  fetch(product.gateway + path, {
    method: query ? 'POST' : 'GET',
    headers: { ...(key && { Authorization: key }), ...(query && { 'Content-Type': 'application/json' }) },
    body: query && JSON.stringify({ query }),
  });

const keyOf = async (alias, policy) => (await rest('POST', '/api/keys', { alias, apply_policies: [policy] })).key;

story('Refusals are seen on the home page, and each one says why', async ({ page, step, signIn, open }) => {
  const shown = async (name) => process.env.SLUICE_README_SHOTS && page.screenshot({ path: `${process.env.SLUICE_README_SHOTS}/${name}.png` });
  await page.setViewportSize({ width: 1200, height: 720 });
  const partner = await keyOf('acme-prod', 'demo');
  const reader = await keyOf('countries-app', 'demo-reader');
  const until = Date.now() + 30_000;
  while ((await call('/keyed/hello', partner)).status !== 200) assert.ok(Date.now() < until, 'the key is not accepted'), await setTimeout(50);
  const deep = '{ continents { countries { languages { name } } } }';
  const refused = await call('/countries/', reader, deep);
  assert.equal(refused.status, 403);
  for (let n = 0; n < 40; n++) await call('/open/hello');
  for (let n = 0; n < 14; n++) await call('/keyed/hello', partner);
  for (let n = 0; n < 12; n++) await call('/countries/', reader, '{ country(code: "CH") { name languages { name } } }');
  await call('/countries/', reader, '{ country(code: "CH") { name population } }');
  await call('/keyed/hello');
  await signIn();
  await step('the home page counts them by reason', async () => {
    await open('/');
    for (const reason of ['quota_exceeded', 'depth_limit', 'field_restricted', 'auth_missing']) await page.getByRole('main').getByText(reason, { exact: true }).first().waitFor();
  });
  await shown('home');
  await step('a refusal names its rule, the value and where that comes from', async () => {
    const id = refused.headers.get('x-request-id');
    while (!(await rest('GET', '/api/refusals?reason=depth_limit')).Data.some((one) => one.id === id)) assert.ok(Date.now() < until, 'the refusal was not handed over'), await setTimeout(50);
    await open(`/why/${id}`);
    await page.getByRole('heading', { name: '403 depth_limit' }).waitFor();
  });
  await shown('why');
  await step('asked again, every stage says what it decided', async () => {
    await page.getByRole('button', { name: 'Ask again now' }).click();
    await page.getByRole('heading', { name: 'Steps' }).waitFor();
  });
});
