import { assert, newUser, product, rest, story } from '../harness.mjs';

/** Waits until fn returns something true. */
async function until(what, fn) {
  for (const end = Date.now() + 30_000; ; ) {
    const found = await fn();
    if (found) return found;
    assert.ok(Date.now() < end, `${what} in 30 s`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** Makes an API that wants keys, a policy with it, and a key. */
async function planOf(id, limits) {
  await rest('POST', '/api/apis', { name: id, api_id: id, proxy: { listen_path: `/${id}/`, target_url: product.upstream }, auth: { auth_header_name: 'Authorization' }, active: true });
  await rest('POST', '/api/portal/policies', { id, name: `Plan ${id}`, access_rights: { [id]: { api_id: id, api_name: id } }, ...limits });
  return rest('POST', '/api/keys', { alias: `key of ${id}`, apply_policies: [id] });
}

const call = (path, key) => fetch(product.gateway + path, { headers: { Authorization: key } });

const found = async (path) => (await fetch(product.url + path, { headers: { Authorization: product.key } })).ok;

story('From a request id to the field, and the call passes', async ({ page, step, signIn, open }) => {
  const { key } = await planOf('metered', { quota_max: 1, quota_renewal_rate: 3600 });
  await until('the key may call', async () => (await call('/metered/first', key)).ok);
  const refused = await call('/metered/orders/7', key);
  assert.equal(refused.status, 403);
  const id = refused.headers.get('x-request-id');
  await until('the admin has the refusal', () => found(`/api/refusals/${id}`));
  await signIn(await newUser('editor'));
  await step('the pasted id opens the refusal with its failing step', async () => {
    await open('/');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill(id);
    await page.getByRole('option', { name: /Why/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: '403 quota_exceeded' }).first().waitFor();
    await page.getByText(/quota is 1.*in policy metered.*the request has 1 used/).waitFor();
    const rule = page.getByRole('table', { name: 'limit' }).getByRole('row', { name: /^quota 1/ });
    await rule.getByRole('link', { name: 'policy metered' }).waitFor();
    await rule.getByText(/set by admin@localhost in revision/).waitFor();
  });
  await step('who set the value leads to the difference of that revision', async () => {
    const set = page.getByText(/^set by admin@localhost in revision/).first();
    const [, revision] = /revision (\d+)/.exec(await set.textContent());
    await set.getByRole('link', { name: `revision ${revision}` }).click();
    await page.getByRole('heading', { level: 1, name: `Revision ${revision}` }).waitFor();
    await page.getByText('Plan metered').first().waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 2, name: '403 quota_exceeded' }).first().waitFor();
  });
  await step('a phone shows it too', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('link', { name: 'Open at this field', exact: true }).scrollIntoViewIfNeeded();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
  });
  await page.setViewportSize({ width: 1280, height: 800 });
  await step('the way to the field puts the focus there', async () => {
    await page.getByRole('link', { name: 'Open at this field', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Plan metered' }).waitFor();
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-path') === 'quota_max');
    assert.equal(await page.getByRole('spinbutton', { name: 'Quota', exact: true }).inputValue(), '1');
  });
  await step('a higher quota is published', async () => {
    await page.keyboard.press('Control+a');
    await page.keyboard.type('5');
    await page.keyboard.press('Control+s');
    const review = page.getByRole('dialog', { name: /Review/ });
    await review.getByText(/1 key/).waitFor();
    await review.getByLabel('Reason').fill('They asked for more');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/^Published as revision/).waitFor();
  });
  await until('the call passes', async () => (await call('/metered/orders/7', key)).ok);
  await step('asked again, it passes', async () => {
    await open(`/why/${id}`);
    await page.getByRole('heading', { level: 2, name: 'The request passes' }).waitFor();
  });
});

story('A value of the definition is opened in the tab that has its field', async ({ page, step, signIn, open }) => {
  await planOf('limited', {});
  await signIn();
  await step('a tab', async () => {
    await open('/apis/limited?at=global_rate_limit.rate');
    await page.waitForURL('**/apis/limited/limits?at=*');
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-path') === 'global_rate_limit.rate');
  });
  await step('a member without a field, in the text', async () => {
    await open('/apis/limited?at=event_handlers.events');
    await page.waitForURL('**/apis/limited/raw?at=*');
    await page.waitForFunction(() => document.activeElement?.shadowRoot?.activeElement?.getAttribute('aria-label') === 'Definition as JSON');
  });
  await step('a field in a part that is folded', async () => {
    await open('/policies/limited?at=max_query_tokens');
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-path') === 'max_query_tokens');
    assert.ok(await page.getByLabel('Tokens').isVisible());
  });
});

story('A change is rolled back with a reason, and seen arriving', async ({ page, step, signIn, open }) => {
  const { key } = await planOf('rolled', { quota_max: 100, quota_renewal_rate: 3600 });
  await until('the key may call', async () => (await call('/rolled/', key)).ok);
  const before = (await rest('GET', '/api/config')).revision;
  const policy = await rest('GET', '/api/portal/policies/rolled');
  await rest('PUT', '/api/portal/policies/rolled?reason=a+mistake', { ...policy, access_rights_array: undefined, quota_max: 1 });
  await until('the key is refused', async () => (await call('/rolled/', key)).status === 403);
  await signIn();
  await step('the change is found by keyboard, with its keys', async () => {
    await open('/');
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.getByRole('heading', { level: 1, name: 'Changes' }).waitFor();
    await page.getByRole('link', { name: String(before + 1), exact: true }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: `Revision ${before + 1}` }).waitFor();
    await page.getByText('quota_max went from 100 to 1').waitFor();
    await page.getByRole('link', { name: 'key of rolled' }).waitFor();
  });
  await step('it is taken back with a reason', async () => {
    await page.keyboard.press('r');
    const dialog = page.getByRole('dialog', { name: `Back to revision ${before}?` });
    await dialog.getByText('quota_max went from 100 to 1').or(dialog.getByText('quota_max went from 1 to 100')).waitFor();
    await dialog.getByLabel('Reason').fill('The quota was a mistake');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('heading', { level: 1, name: `Revision ${before + 2}` }).waitFor();
  });
  await step('every gateway has it, and the call passes', async () => {
    await page.getByRole('listitem').getByText('has it', { exact: true }).waitFor();
    await page.getByText('The quota was a mistake').waitFor();
  });
  await until('the call passes', async () => (await call('/rolled/', key)).ok);
  await step('the audit log has what was before and after', async () => {
    await open('/audit?kind=policy&object=rolled');
    await page.getByRole('link', { name: 'rollback' }).or(page.getByRole('link', { name: 'update' })).first().click();
    const entry = page.getByRole('dialog');
    await entry.getByLabel('Before').getByText('"quota_max": 1,').waitFor();
    await entry.getByLabel('After').getByText('"quota_max": 100,').waitFor();
  });
  const { audit } = await rest('GET', '/api/audit?object_kind=policy&object_id=rolled');
  assert.deepEqual([audit[0].before.quota_max, audit[0].after.quota_max], [1, 100]);
});
