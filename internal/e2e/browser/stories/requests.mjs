import { assert, newUser, product, rest, story } from '../harness.mjs';

/** Makes a plan with an entry of the catalogue, and developers who ask for it. */
async function requestsOf(plan, names) {
  await rest('POST', '/api/apis', { name: plan, api_id: plan, proxy: { listen_path: `/${plan}/`, target_url: product.upstream }, use_keyless: false, auth: { auth_header_name: 'Authorization' }, active: true });
  await rest('POST', '/api/portal/policies', { id: plan, name: `Plan ${plan}`, quota_max: 100, quota_renewal_rate: 3600, access_rights: { [plan]: { api_id: plan } } });
  await rest('POST', '/api/portal/catalogue/entries', { name: plan, api_id: plan, policy_id: plan, show: true });
  const all = [];
  for (const name of names) {
    const email = `${name}@example.com`;
    const { Message: developer } = await rest('POST', '/api/portal/developers', { email });
    const { Message: id } = await rest('POST', '/api/portal/requests', { for_plan: plan, version: 'v2', by_user: developer });
    all.push({ email, developer, id });
  }
  return all;
}

const stateOf = async ({ id }) => rest('GET', `/api/portal/requests/${id}`);

story('Key requests: approve, a second approver, decline with a reason', async ({ page, step, signIn, open, allow }) => {
  const [ada, bo, cy] = await requestsOf('single', ['ada', 'bo', 'cy']);
  await signIn(await newUser('approver'));
  await step('the request is beside the list', async () => {
    await open('/requests');
    await page.getByRole('link', { name: ada.email }).click();
    await page.getByRole('heading', { name: `${ada.email} asks for Plan single` }).waitFor();
  });
  await step('approving shows the key this once', async () => {
    await page.keyboard.press('a');
    const sheet = page.getByRole('dialog', { name: `Key for ${ada.email}` });
    await sheet.getByText(/^slk_/).waitFor();
    await page.keyboard.press('Escape');
    const key = (await sheet.getByText(/^slk_/).innerText()).trim();
    await sheet.getByRole('checkbox', { name: 'It is stored' }).check();
    await sheet.getByRole('button', { name: 'Close' }).click();
    await sheet.waitFor({ state: 'detached' });
    assert.ok(!(await page.content()).includes(key), 'the key is gone from the page');
    assert.equal((await stateOf(ada)).state, 'approved');
  });
  allow(/status of 409/);
  await step('a second approver sees that somebody was first', async () => {
    await open(`/requests?open=${bo.id}`);
    await page.route('**/api/portal/requests/approve/*', async (route) => {
      await rest('PUT', `/api/portal/requests/approve/${bo.id}`); // the first, at the last moment
      await route.continue();
    });
    await page.getByRole('region', { name: 'Key requests' }).getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('alert').filter({ hasText: 'cannot be approved any more' }).waitFor();
    await page.getByRole('region', { name: 'Key requests' }).getByText('Approved', { exact: true }).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
  });
  await step('declining asks for a reason', async () => {
    await open(`/requests?open=${cy.id}`);
    await page.getByRole('button', { name: 'Decline…' }).waitFor();
    await page.keyboard.press('d');
    await page.getByLabel('Reason').fill('Which data do you need?');
    await page.keyboard.press('Control+Enter');
    await page.getByText(`Declined: ${cy.email}.`).waitFor();
    const { state, reason } = await stateOf(cy);
    assert.deepEqual({ state, reason }, { state: 'rejected', reason: 'Which data do you need?' });
  });
});

story('Key requests: twenty at once, each with its result', async ({ page, step, signIn, open, allow }) => {
  const names = Array.from({ length: 20 }, (_, at) => `many${at}`);
  const all = await requestsOf('many', names);
  const left = all[7];
  await rest('PUT', `/api/portal/developers/${left.developer}`, { email: left.email, inactive: true });
  await signIn(await newUser('approver'));
  allow(/status of 409/);
  await step('all of them are selected', async () => {
    await open('/requests?q=many');
    await page.getByRole('link', { name: left.email, exact: true }).waitFor();
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('group', { name: '20 selected' }).getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('dialog', { name: 'Approve 20 requests' }).waitFor();
  });
  await step('one fails with its reason, and the keys of the others are shown once', async () => {
    await page.getByRole('dialog').getByRole('button', { name: 'Approve 20 requests' }).click();
    const sheet = page.getByRole('dialog', { name: '19 credentials, shown this once' });
    await sheet.waitFor();
    assert.equal(await sheet.getByText('approved', { exact: true }).count(), 19);
    await sheet.getByRole('row', { name: new RegExp(`^${left.email} .*inactive`) }).waitFor();
    await sheet.getByRole('checkbox', { name: 'It is stored' }).check();
    await sheet.getByRole('button', { name: 'Close' }).click();
  });
  await step('the one that failed still waits', async () => {
    await page.getByRole('link', { name: all[8].email, exact: true }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: left.email, exact: true }).waitFor();
    assert.equal((await stateOf(left)).state, 'pending');
    assert.equal((await stateOf(all[19])).state, 'approved');
  });
});
