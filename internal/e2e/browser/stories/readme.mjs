// product: --demo
// setting: usage.flush=200ms
// What the README shows. SLUICE_README_SHOTS=dir writes its pictures (make screenshots).
import { assert, eventually, product, rest, story } from '../harness.mjs';

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
  await rest('POST', '/api/policies', { id: 'gold', name: 'Gold', active: true, rate: 100, per: 60, quota_max: 10, quota_renewal_rate: 3600, access_rights: { 'demo-keyed': { api_id: 'demo-keyed', versions: ['Default'] } } });
  const partner = await keyOf('acme-prod', 'gold');
  const reader = await keyOf('countries-app', 'demo-reader');
  await eventually('the keys are accepted', async () => {
    assert.equal((await call('/keyed/hello', partner)).status, 200);
    assert.equal((await call('/countries/', reader, '{ country(code: "CH") { name } }')).status, 200);
  });
  for (let n = 0; n < 40; n++) await call('/open/hello');
  let refused;
  for (let n = 0; n < 14; n++) refused = await call('/keyed/hello', partner);
  assert.equal(refused.status, 403);
  await call('/countries/', reader, '{ continents { countries { languages { name } } } }');
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
    await eventually('the admin has the refusal', async () => assert.ok((await rest('GET', '/api/refusals?reason=quota_exceeded')).Data.some((one) => one.id === id)));
    await open(`/why/${id}`);
    await page.getByRole('heading', { name: '403 quota_exceeded' }).first().waitFor();
    await page.getByRole('table', { name: 'limit' }).getByRole('link', { name: 'policy gold' }).first().waitFor();
  });
  await shown('why');
});
