import { assert, product, rest, story } from '../harness.mjs';

/** The text of a letter to an address that has something. */
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
const called = async (key) => (await fetch(`${product.gateway}/parcels/7`, { headers: { Authorization: key } })).status;

const quota = 5;

story('The whole story over both sites, with eight tabs open', async ({ page, context, browser, step, signIn }) => {
  await signIn();
  const tabs = [];
  for (const path of ['/', '/apis', '/policies', '/keys', '/requests', '/traffic', '/gateways', '/audit']) {
    const tab = await context.newPage();
    tab.setDefaultTimeout(45_000);
    await tab.goto(product.url + path);
    await tab.locator('h1').waitFor();
    tabs.push(tab);
  }
  const loaded = tabs.map((tab) => { // how often each was loaded since
    const count = { n: 0 };
    tab.on('load', () => count.n++);
    return count;
  });

  await step('an API, a plan and an entry of the catalogue', async () => {
    await rest('POST', '/api/apis', { api_id: 'parcels', name: 'Parcels', use_keyless: false, auth: { auth_header_name: 'Authorization' }, proxy: { listen_path: '/parcels/', target_url: product.upstream, strip_listen_path: true } });
    await rest('POST', '/api/portal/policies', {
      id: 'small', name: 'Small', state: 'active', rate: 1000, per: 1, quota_max: quota, quota_renewal_rate: 3600, access_rights: { parcels: { api_id: 'parcels', versions: ['Default'] } },
    });
    await rest('PUT', '/api/portal/configuration', { require_key_approval: true });
    await rest('POST', '/api/portal/catalogue/entries', { id: 'parcels', name: 'Parcels', show: true, api_id: 'parcels', policy_id: 'small' });
    await page.goto(`${product.url}/apis/parcels`);
    await page.getByRole('heading', { level: 1, name: /Parcels/ }).waitFor();
    await tabs[1].getByRole('link', { name: 'Parcels' }).first().waitFor(); // by itself
  });

  // The developer has a browser of their own.
  const outside = await browser.newContext();
  const ada = await outside.newPage();
  ada.setDefaultTimeout(45_000);
  await step('a developer signs up and asks for access', async () => {
    await ada.goto(`${product.url}/portal/signup`);
    await ada.getByLabel('Email address').fill('ada@example.com');
    await ada.getByLabel('Password').fill('correct horse');
    await ada.getByRole('main').getByRole('button', { name: 'Sign up' }).click();
    const link = /\/portal\/verify\?token=\w+/.exec(await letter('ada@example.com', '/verify?token='))[0];
    await ada.goto(product.url + link);
    await ada.getByLabel('Password').fill('correct horse');
    await ada.getByRole('button', { name: 'Confirm' }).click();
    await ada.getByRole('link', { name: 'Parcels' }).click();
    await ada.getByRole('link', { name: 'Request access' }).click();
    await ada.getByRole('button', { name: 'Send the request' }).click();
    await ada.getByRole('cell', { name: 'pending' }).waitFor();
  });

  let key;
  await step('the request appears in the open tab and is approved', async () => {
    await tabs[4].getByText('ada@example.com').first().waitFor();
    await page.goto(`${product.url}/requests`);
    await page.getByText('ada@example.com').first().click();
    await page.getByRole('button', { name: /^Approve/ }).first().click();
    const sheet = page.getByRole('dialog');
    await sheet.locator('[data-secret]').first().waitFor();
    key = (await sheet.locator('[data-secret]').first().innerText()).trim();
    await sheet.getByLabel('It is stored').check();
    await sheet.getByRole('button', { name: 'Close' }).click();
    await sheet.waitFor({ state: 'detached' });
  });

  await step('calls pass, and the usage rises', async () => {
    assert.equal(await called(key), 200);
    await ada.goto(`${product.url}/portal/keys`);
    await ada.getByRole('main').getByRole('link').first().click();
    await ada.getByText(`${quota - 1} of ${quota} left`).waitFor();
    for (let n = 1; n < quota; n++) assert.equal(await called(key), 200);
    await ada.reload();
    await ada.getByText(`0 of ${quota} left`).waitFor();
    while (!(await rest('GET', '/api/usage?step=none&group_by=api')).Data.some((row) => row.api_id === 'parcels'));
    await page.goto(`${product.url}/traffic`);
    await page.getByRole('link', { name: 'parcels' }).first().waitFor();
  });

  await step('the quota ends, and the portal says which rule', async () => {
    assert.equal(await called(key), 403);
    do await ada.reload();
    while ((await ada.getByText('The quota of the plan was used up.').count()) === 0);
    await ada.getByText(`${quota} calls in an hour`).waitFor();
    await page.goto(`${product.url}/keys`);
    await page.locator('h1').waitFor();
  });

  await step('the key is rotated, and after a reset a call passes', async () => {
    await ada.getByRole('button', { name: 'Rotate the key' }).click();
    await ada.getByRole('heading', { name: 'Keep this now' }).waitFor();
    const fresh = (await ada.locator('#secret').innerText()).trim();
    while ((await called(fresh)) !== 403); // known, and of the same quota
    const developer = (await rest('GET', '/api/portal/developers')).Data.find((one) => one.email === 'ada@example.com').id;
    const { Data } = await rest('GET', `/api/portal/developers/${developer}/keys`);
    await rest('POST', `/api/portal/developers/${developer}/keys/${Data[0].key_id}/reset_quota`);
    while ((await called(fresh)) !== 200);
  });

  await step('the eight tabs are as they were, and follow', async () => {
    const { revision } = await rest('GET', '/api/pulse');
    assert.ok(revision > 0);
    for (const [i, tab] of tabs.entries()) {
      assert.equal(loaded[i].n, 0, `${tab.url()} was loaded again`);
      assert.equal(await tab.locator('h1').count(), 1);
      await tab.bringToFront();
      await tab.getByText(`rev ${revision}`).first().waitFor();
    }
  });
  await outside.close();
});
