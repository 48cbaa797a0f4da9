// product: --demo
// setting: usage.flush=200ms
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { assert, neverLogged, product, rest, story } from '../harness.mjs';

const path = '/keyed/hello';
const call = (key) => fetch(product.gateway + path, { headers: key ? { Authorization: key } : {} });

/** Waits until a key is answered with a status. */
async function answered(key, status) {
  const until = Date.now() + 30_000;
  for (let last; (last = (await call(key)).status) !== status; await setTimeout(50)) assert.ok(Date.now() < until, `the key is answered with ${last}, and not ${status}`);
}

/** A policy with a quota of its own, for the demo's API with keys. */
const policy = (id, quota) =>
  rest('POST', '/api/policies', { id, name: id, active: true, rate: 1000, per: 1, quota_max: quota, quota_renewal_rate: 3600, access_rights: { 'demo-keyed': { api_id: 'demo-keyed', versions: ['Default'] } } });

/** Makes a key by the REST. */
async function made(alias, policies) {
  const { key, key_hash } = await rest('POST', '/api/keys', { alias, apply_policies: policies });
  await answered(key, 200);
  return { key: neverLogged(key), hash: key_hash };
}

const named = async (alias) => (await rest('GET', `/api/keys?view=row&q=${alias}`)).rows;
const sheetOf = (page) => page.getByRole('dialog', { name: /shown this once/ });
const secretOf = async (sheet) => neverLogged((await sheet.locator('[data-secret]').innerText()).trim());

async function fillIn(page, open, alias) {
  await open('/keys/new');
  await page.getByLabel('Alias').fill(alias);
  await page.getByRole('checkbox', { name: 'Demo demo', exact: true }).check();
}

/** Where a page could keep a text; empty if nowhere. */
const placesWith = (page, text) =>
  page.evaluate(async (secret) => {
    const cached = [];
    for (const name of await caches.keys()) {
      const cache = await caches.open(name);
      for (const one of await cache.keys()) cached.push(one.url, await (await cache.match(one)).text());
    }
    const places = {
      localStorage: JSON.stringify(localStorage),
      sessionStorage: JSON.stringify(sessionStorage),
      databases: JSON.stringify(await indexedDB.databases()),
      caches: cached.join(' '),
      cookies: document.cookie,
      address: location.href,
      'state of the address': JSON.stringify(history.state),
      title: document.title,
      requests: performance.getEntriesByType('resource').map((one) => one.name).join(' '),
      page: document.documentElement.outerHTML,
      fields: [...document.querySelectorAll('input, textarea')].map((one) => one.value).join(' '),
    };
    return Object.keys(places).filter((name) => places[name].includes(secret));
  }, text);

story(
  'A key is made once and shown once',
  async ({ page, step, signIn, open }) => {
    await signIn();
    const said = [];
    page.on('request', (request) => said.push(request.url(), request.postData() ?? ''));
    let key;
    const sheet = sheetOf(page);
    const close = sheet.getByRole('button', { name: 'Close' });
    await step('a double click makes one key, in an answer that nothing keeps', async () => {
      await fillIn(page, open, 'acme-prod');
      const answers = page.waitForResponse((one) => one.url().endsWith('/api/keys') && one.request().method() === 'POST');
      await page.getByRole('button', { name: 'Make the key' }).dblclick();
      assert.match((await (await answers).allHeaders())['cache-control'], /no-store/);
      await sheet.waitFor();
      key = await secretOf(sheet);
      assert.match(key, /^slk_\w+$/);
    });
    await step('neither Esc, nor a click beside it, nor the back button closes the sheet', async () => {
      await page.keyboard.press('Escape');
      await page.mouse.click(5, 5);
      const asked = page.waitForEvent('dialog');
      page.once('dialog', (dialog) => void dialog.dismiss());
      await page.evaluate(() => history.back());
      await asked;
      await page.waitForURL('**/keys/new');
      assert.equal(await secretOf(sheet), key);
      assert.ok(await close.isDisabled());
    });
    await step('it is copied', async () => {
      await sheet.getByRole('button', { name: 'Copy' }).click();
      await sheet.getByText('Copied').waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
      assert.ok(await close.isEnabled());
      await page.evaluate(() => navigator.clipboard.writeText(''));
    });
    await step('it is saved', async () => {
      const [file] = await Promise.all([page.waitForEvent('download'), sheet.getByRole('button', { name: 'Save' }).click()]);
      assert.equal(file.suggestedFilename(), 'key-acme-prod.txt');
      assert.equal(readFileSync(await file.path(), 'utf8'), key + '\n');
    });
    await step('the print has the name, the key and the date alone', async () => {
      await page.emulateMedia({ media: 'print' });
      const printed = await page.evaluate(
        () =>
          new Promise((resolve) => {
            globalThis.print = () => resolve(document.body.innerText);
            [...document.querySelectorAll('[role=dialog] button')].find((one) => one.textContent === 'Print').click();
          }),
      );
      await page.emulateMedia({ media: 'screen' });
      const lines = printed.split('\n').map((line) => line.trim()).filter(Boolean);
      assert.deepEqual(lines, ['Key for acme-prod, shown this once', key, `Made on ${new Date().toISOString().slice(0, 10)}`]);
    });
    await step('afterwards nothing in the browser has it', async () => {
      await close.click();
      await page.getByRole('heading', { level: 1, name: 'acme-prod' }).waitFor();
      assert.deepEqual(await placesWith(page, key), []);
      await page.goBack();
      await page.getByRole('heading', { level: 1 }).waitFor();
      assert.deepEqual(await placesWith(page, key), []);
      assert.ok(!said.some((text) => text.includes(key)), 'a request held the key');
    });
    await step('there is one, and it is accepted', async () => {
      assert.equal((await named('acme-prod')).length, 1);
      await answered(key, 200);
    });
  },
  { permissions: ['clipboard-read', 'clipboard-write'] },
);

story('A lost answer does not make a second key', async ({ page, step, signIn, open }) => {
  await signIn();
  let lost = false;
  await page.route('**/api/keys', async (route) => {
    if (route.request().method() !== 'POST' || lost) return route.fallback();
    lost = true;
    const { key } = await (await route.fetch()).json(); // the server has made it
    neverLogged(key);
    return route.abort('connectionreset');
  });
  await step('the page says that the answer did not come', async () => {
    await fillIn(page, open, 'lost');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('alert').filter({ hasText: /\S/ }).waitFor();
  });
  await step('sent again, it says that the key was made but not shown', async () => {
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByRole('alert').filter({ hasText: /not shown|shown that once/ }).waitFor();
    assert.equal((await named('lost')).length, 1);
  });
}, { allow: [/ERR_CONNECTION_RESET/, /status of 409/] });

story('A leaked key is found by its hash and revoked', async ({ page, step, signIn, open }) => {
  const { key, hash } = await made('leaked', ['demo']);
  await signIn();
  await open('/');
  const sent = [];
  page.on('request', (request) => sent.push(`${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ''}`));
  for (const pasted of [key, `Authorization: Bearer ${key}`, `curl -H 'Authorization: ${key}' https://api.example.com/orders`]) {
    await step(`pasted as "${pasted.replace(key, '…')}" it leads to the key`, async () => {
      await open('/');
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Search' }).fill(pasted);
      await page.getByRole('option', { name: /key/i }).first().waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: 'leaked' }).waitFor();
      assert.equal(new URL(page.url()).pathname, `/keys/${hash}`);
    });
  }
  await step('it is revoked by its alias', async () => {
    await page.keyboard.press('v');
    const dialog = page.getByRole('dialog', { name: 'Revoke this key?' });
    assert.ok(await dialog.getByRole('button', { name: 'Revoke' }).isDisabled());
    await dialog.getByRole('textbox').fill('leaked');
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
  });
  await step('it is refused, and no request held it', async () => {
    await answered(key, 403);
    assert.equal((await named('leaked')).length, 0);
    assert.ok(sent.some((one) => one.includes(hash)));
    assert.deepEqual(sent.filter((one) => one.includes(key)), []);
  });
});

story('A rotated key and its successor share one quota', async ({ page, step, signIn, open }) => {
  await policy('metered', 5);
  const { key, hash } = await made('partner', ['metered']); // one call of five
  await signIn();
  let next;
  await step('the successor is shown once', async () => {
    await open(`/keys/${hash}`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    const ask = page.getByRole('dialog', { name: 'Rotate this key' });
    await ask.getByLabel('Grace').selectOption('1h');
    await ask.getByRole('button', { name: 'Rotate' }).dblclick();
    const sheet = sheetOf(page);
    await sheet.waitFor();
    next = await secretOf(sheet);
    assert.notEqual(next, key);
    await sheet.getByText('It is stored').click();
    await sheet.getByRole('button', { name: 'Close' }).click();
    await sheet.waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Former keys' }).waitFor();
  });
  await step('both are accepted, and count as one', async () => {
    await answered(next, 200); // two
    assert.equal((await call(key)).status, 200); // three
    assert.equal((await call(next)).status, 200);
    assert.equal((await call(key)).status, 200);
    assert.equal((await call(next)).status, 403);
    assert.equal((await call(key)).status, 403);
    await page.reload();
    await page.getByText('5 of 5 used').waitFor();
  });
  await step('the quota is reset for both', async () => {
    await page.getByRole('button', { name: 'Reset quota' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reset quota' }).click();
    await page.getByText('The quota begins anew').first().waitFor();
    await answered(key, 200);
    assert.equal((await call(next)).status, 200);
  });
  await step('the grace is ended early', async () => {
    await page.getByRole('button', { name: 'End now' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End now' }).click();
    await page.getByRole('heading', { name: 'Former keys' }).waitFor({ state: 'detached' });
    await answered(key, 401);
    assert.equal((await call(next)).status, 200);
  });
});
