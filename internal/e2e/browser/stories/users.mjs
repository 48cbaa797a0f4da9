import { assert, newUser, rest, story } from '../harness.mjs';

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

story('An invitation is shown once', async ({ page, step, signIn, open }) => {
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
});
