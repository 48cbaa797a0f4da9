import { assert, newUser, product, rest, story } from '../harness.mjs';

story('A viewer sees no verbs, and the server refuses them', async ({ page, step, signIn, open }) => {
  const viewer = await newUser('viewer');
  await signIn(viewer);
  await step('the navigation has no users', async () => {
    await open('/');
    assert.equal(await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Users' }).count(), 0);
  });
  const status = await page.evaluate(async () => {
    const { csrf_token } = await (await fetch('/api/session')).json();
    const headers = { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf_token };
    return [
      (await fetch('/api/policies', { method: 'POST', headers, body: '{"id":"x","name":"x","active":true}' })).status,
      (await fetch('/api/users')).status,
    ];
  });
  assert.deepEqual(status, [403, 403]);
  await rest('GET', '/api/policies/x', undefined, { status: 404 });
}, { allow: [/status of 403/] });

story('A user is invited, comes in and sets a password', async ({ page, context, step, signIn, open }) => {
  await signIn();
  let link;
  await step('the invitation is shown once', async () => {
    await open('/users');
    await page.getByRole('button', { name: 'Invite a user' }).click();
    await page.getByLabel('Email address').fill('bob@example.com');
    await page.getByRole('button', { name: 'Make the invitation' }).click();
    const sheet = page.getByRole('dialog', { name: /Invitation for bob/ });
    await sheet.waitFor();
    link = (await sheet.locator('[data-secret]').innerText()).trim();
    await page.keyboard.press('Escape');
    assert.ok(await sheet.isVisible(), 'Esc does not close the sheet');
    assert.ok(await sheet.getByRole('button', { name: 'Close' }).isDisabled());
  });
  await step('it closes when it is stored, and nothing keeps the secret', async () => {
    await page.getByLabel('It is stored').check();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('link', { name: 'bob' }).or(page.getByText('bob@example.com').first()).first().waitFor();
    const token = new URL(link).hash.slice(1);
    const found = await page.evaluate((secret) => [document.body.innerText, document.title, location.href, JSON.stringify(localStorage), JSON.stringify(sessionStorage)].some((text) => text.includes(secret)), token);
    assert.equal(found, false);
  });
  await step('bob comes in and sets a password', async () => {
    await context.clearCookies();
    await page.goto(product.url + '/enter' + new URL(link).hash);
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor();
    await page.getByLabel(/^New password/).fill('several words of bob');
    await page.getByRole('button', { name: 'Set the password' }).click();
    await page.getByText('The password is changed.').first().waitFor();
  });
  await step('the password signs bob in', async () => {
    await context.clearCookies();
    await page.goto(product.url + '/');
    await page.getByLabel('Email address').fill('bob@example.com');
    await page.getByLabel(/^Password/).fill('several words of bob');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  });
  // Chromium overlooks the hidden field of the form, which it has seen before, once a second field for a password comes.
}, { allow: [/status of 401/, /should have \(optionally hidden\) username fields/] });
