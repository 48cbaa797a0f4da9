// product: --demo
import { assert, eventually, neverLogged, newUser, product, rest, story } from '../harness.mjs';

const call = (key) => fetch(product.gateway + '/keyed/hello', { headers: { Authorization: key } });
const own = async (hash) => (await rest('GET', `/api/keys/${hash}?hashed=true&own=true`)).data;
const rights = { 'demo-keyed': { api_id: 'demo-keyed', versions: ['Default'] } };

/** Makes a key for the demo's API with keys. */
async function made(session) {
  const { key, key_hash } = await rest('POST', '/api/keys', session);
  return { key: neverLogged(key), hash: key_hash };
}

const save = (page) => page.getByRole('button', { name: 'Save' }).click();
// Not by the message, which may be that of the save before.
const saved = (page) => page.getByRole('button', { name: 'Save' }).waitFor({ state: 'detached' });

story('The limits and rights of a key are edited', async ({ page, step, signIn, open, allow }) => {
  await rest('POST', '/api/policies', { id: 'silver', name: 'Silver', active: true, rate: 7, per: 1, quota_max: 77, quota_renewal_rate: 3600, access_rights: rights });
  const { key, hash } = await made({ alias: 'acme', quota_max: 50, quota_renewal_rate: 3600, meta_data: { plan: 'a' }, access_rights: rights });
  await eventually('the key is accepted', async () => assert.equal((await call(key)).status, 200));
  await signIn();
  await step('e on the row of the list opens the form', async () => {
    await open('/keys?q=acme');
    await page.getByRole('link', { name: 'acme' }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('e');
    await page.waitForURL(`**/keys/${hash}/edit?at=alias`);
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-path') === 'alias');
  });
  await step('the help lists it', async () => {
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Edit', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
  await step('alias, end, labels and limits are saved; the rest and the used quota stay', async () => {
    await page.getByLabel('Alias', { exact: true }).fill('acme-prod');
    await page.getByLabel('Ends on').fill('2035-01-31T12:30');
    await page.getByRole('button', { name: 'Add: Labels' }).click();
    await page.getByRole('textbox', { name: 'Labels, entry 1' }).fill('team=a');
    await page.getByLabel('Rate', { exact: true }).fill('20');
    await page.getByLabel('Period of the rate').fill('60');
    await page.getByLabel('Quota', { exact: true }).fill('40');
    await page.getByLabel('Depth', { exact: true }).fill('3');
    await page.keyboard.press('Control+s');
    await saved(page);
    await page.getByRole('heading', { level: 1, name: 'acme-prod' }).waitFor();
    const now = await own(hash);
    assert.deepEqual([now.alias, now.tags, now.rate, now.per, now.quota_max, now.max_query_depth, now.meta_data], ['acme-prod', ['team=a'], 20, 60, 40, 3, { plan: 'a' }]);
    assert.equal(new Date(now.expires * 1000).getFullYear(), 2035);
    assert.equal((await rest('GET', `/api/keys/${hash}?hashed=true`)).data.quota_remaining, 39);
  });
  await step('what the server refuses stands at its field', async () => {
    allow(/status of 400/);
    await page.getByLabel('Period of the rate').fill('0.0001');
    await page.locator('[data-path="per"][aria-invalid]').waitFor();
    await save(page);
    await page.getByRole('alert').getByText('per', { exact: true }).waitFor();
    assert.equal((await own(hash)).per, 60);
  });
  await step('an end that is over is pointed out', async () => {
    await page.getByRole('button', { name: /^Discard/ }).click();
    await page.getByLabel('Ends on').fill('2020-01-31T12:30');
    await page.getByText('This is over already').waitFor();
    await page.getByRole('button', { name: /^Discard/ }).click();
  });
  await step('rights are given for each API, with limits', async () => {
    await page.getByLabel('Limits of its own').check();
    await page.locator('[data-path="access_rights[\\"demo-keyed\\"].limit.quota_max"]').fill('9');
    await save(page);
    await saved(page);
    assert.equal((await own(hash)).access_rights['demo-keyed'].limit.quota_max, 9);
  });
  await step('switched off, its calls are refused, until it is switched on', async () => {
    await page.getByLabel('In use').uncheck();
    await save(page);
    await saved(page);
    await eventually('the key is refused', async () => assert.equal((await call(key)).status, 403));
    await page.getByLabel('In use').check();
    await save(page);
    await eventually('the key is accepted', async () => assert.equal((await call(key)).status, 200));
  });
  await step('with a policy the form says what they come to', async () => {
    await page.getByRole('combobox', { name: 'Policies' }).fill('silver');
    await page.getByRole('option', { name: /Silver/ }).click();
    await page.getByText('77 in 1 h').waitFor();
    await page.getByText('those decide whether it is in use').waitFor();
    assert.ok(await page.getByLabel('In use').isDisabled());
    await page.getByText('Without effect as long as the key has policies').waitFor();
    await save(page);
    await saved(page);
    const now = await own(hash);
    assert.deepEqual([now.apply_policies, now.quota_max], [['silver'], 40], 'the limits of the policy are not those of the key');
  });
});

story('Two people edit a key', async ({ page, step, signIn, open, allow }) => {
  const { hash } = await made({ alias: 'shared', access_rights: rights });
  await signIn();
  allow(/status of 409/);
  await step('what does not overlap is merged', async () => {
    await open(`/keys/${hash}/edit`);
    await page.getByLabel('Rate', { exact: true }).fill('5');
    await page.getByLabel('Period of the rate').fill('1');
    await rest('PUT', `/api/keys/${hash}?hashed=true`, { ...(await own(hash)), alias: 'theirs' });
    await save(page);
    await page.getByRole('heading', { level: 1, name: 'theirs' }).waitFor();
    const now = await own(hash);
    assert.deepEqual([now.alias, now.rate], ['theirs', 5]);
  });
  await step('what overlaps asks', async () => {
    await page.getByLabel('Alias', { exact: true }).fill('mine');
    await rest('PUT', `/api/keys/${hash}?hashed=true`, { ...(await own(hash)), alias: 'theirs again' });
    await save(page);
    const dialog = page.getByRole('dialog', { name: /changed it in the meantime/ });
    await dialog.getByRole('radio', { name: /^mine/ }).check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: 'mine' }).waitFor();
    assert.equal((await own(hash)).alias, 'mine');
  });
});

story('A viewer reads the limits of a key', async ({ page, step, signIn, open }) => {
  const { hash } = await made({ alias: 'read', access_rights: rights });
  await signIn(await newUser('viewer'));
  await step('and changes nothing', async () => {
    await open(`/keys/${hash}/edit`);
    assert.ok(await page.getByLabel('Alias', { exact: true }).isDisabled());
    await page.getByText('Needs editor; you are viewer.').first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0);
  });
});

story('Several keys are changed at once', async ({ page, step, signIn, open, allow }) => {
  await rest('POST', '/api/policies', { id: 'bulk', name: 'Bulk', active: true, access_rights: rights });
  const all = [];
  for (const n of [1, 2, 3]) all.push(await made({ alias: `many${n}`, quota_max: 10, access_rights: rights }));
  await signIn();
  const choose = async (verb) => {
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('group', { name: '3 selected' }).getByRole('button', { name: verb, exact: true }).click();
    return page.getByRole('dialog');
  };
  const close = async (dialog, said) => {
    await dialog.getByText(said).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await dialog.waitFor({ state: 'detached' });
  };
  const chosen = async (verb) => {
    const dialog = await choose(verb);
    await dialog.getByRole('button', { name: verb, exact: true }).click();
    return dialog;
  };
  await open('/keys?q=many');
  await step('they end later', async () => {
    const dialog = await choose('Ends…');
    await dialog.getByLabel('Ends on').fill('2035-01-31T12:30');
    await dialog.getByRole('button', { name: 'Ends', exact: true }).click();
    await close(dialog, '3 of 3 done');
    for (const { hash } of all) assert.equal(new Date((await own(hash)).expires * 1000).getFullYear(), 2035);
  });
  await step('they are switched off, and on again', async () => {
    await close(await chosen('Deactivate'), '3 of 3 done');
    for (const { hash } of all) assert.equal((await own(hash)).is_inactive, true);
    await eventually('the key is refused', async () => assert.equal((await call(all[0].key)).status, 403));
    await close(await chosen('Activate'), '3 of 3 done');
    await eventually('the key is accepted', async () => assert.equal((await call(all[0].key)).status, 200));
  });
  await step('a policy is added', async () => {
    const dialog = await choose('Policies…');
    await dialog.getByRole('combobox', { name: 'Policies' }).fill('bulk');
    await dialog.getByRole('option', { name: /Bulk/ }).click();
    await dialog.getByRole('button', { name: 'Policies', exact: true }).click();
    await close(dialog, '3 of 3 done');
    for (const { hash } of all) assert.deepEqual((await own(hash)).apply_policies, ['bulk']);
  });
  await step('keys with policies are not switched off alone, and that is said', async () => {
    const dialog = await chosen('Deactivate');
    await dialog.getByRole('row', { name: 'many1' }).getByText('those decide whether it is in use').waitFor();
    await close(dialog, '0 of 3 done');
  });
  await step('each result is told; what failed is tried again', async () => {
    allow(/status of 503/);
    let away = true;
    await page.route('**/api/keys/*', (route) => (away && route.request().method() === 'PUT' && route.request().url().includes(all[1].hash) ? route.fulfill({ status: 503, json: { Status: 'Error', Message: 'The database is away' } }) : route.continue()));
    const dialog = await choose('Labels…');
    await dialog.getByRole('textbox', { name: 'Labels to add, entry 1' }).fill('team=b');
    await dialog.getByRole('button', { name: 'Labels', exact: true }).click();
    await dialog.getByText('2 of 3 done').waitFor();
    await dialog.getByRole('row', { name: 'many2' }).getByText('The database is away').waitFor();
    away = false;
    await dialog.getByRole('button', { name: 'Try the others again' }).click();
    await close(dialog, '3 of 3 done');
    for (const { hash } of all) assert.deepEqual((await own(hash)).tags, ['team=b']);
  });
  await step('they are revoked', async () => {
    const dialog = await choose('Revoke…');
    await dialog.getByRole('textbox').fill('revoke');
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
    await close(dialog, '3 of 3 done');
    await page.getByText('Nothing matches.').waitFor();
    await eventually('the key is refused', async () => assert.equal((await call(all[0].key)).status, 403));
  });
});
