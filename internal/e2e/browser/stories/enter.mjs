import { assert, enterLink, newUser, product, rest, story } from '../harness.mjs';

story('The link of the terminal signs in once', async ({ page, context, step, allow }) => {
  await step('the link opens the account page and leaves the address', async () => {
    await page.goto(product.link);
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor();
    assert.equal(new URL(page.url()).hash, '');
  });
  await step('the session lasts over a reload', async () => {
    await page.goto(product.url + '/');
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  });
  allow(/status of 401 .*\/api\/session/);
  await step('the second use is refused', async () => {
    await context.clearCookies();
    await page.goto(product.link);
    await page.getByRole('alert').filter({ hasText: /used/ }).waitFor();
  });
});

story('A password signs in, and a wrong one is refused in the same words', async ({ page, step, allow }) => {
  const ann = await newUser('viewer');
  allow(/status of 40[13]/, /status of 429/);
  const attempt = async (email, password) => {
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel(/^Password/).fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };
  const said = async () => (await page.getByRole('alert').filter({ hasText: /\S/ }).innerText()).trim();
  await step('a wrong password', async () => {
    await page.goto(product.url + '/');
    await attempt(ann.email, 'wrong password');
    await page.getByRole('alert').filter({ hasText: /\S/ }).waitFor();
  });
  const wrong = await said();
  await step('an unknown address is answered in the same words', async () => {
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/api/session') && answer.request().method() === 'POST');
    await attempt('nobody@example.com', 'wrong password');
    await answered;
    await page.getByRole('alert').filter({ hasText: /\S/ }).waitFor();
  });
  assert.equal(await said(), wrong);
  await step('the right password opens the home page', async () => {
    await attempt(ann.email, ann.password);
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  });
  await step('signing out leads back', async () => {
    await page.getByRole('button', { name: /viewer Number/ }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sign in to Sluice' }).waitFor();
  });
});

story('After too many wrong passwords the wait is counted down', async ({ page, step, allow }) => {
  allow(/status of 40[13]/, /status of 429/);
  await step('the wait is shown, and the button waits too', async () => {
    await page.goto(product.url + '/');
    for (let n = 0; n < 12; n++) {
      const button = page.getByRole('button', { name: 'Sign in', exact: true });
      if (await page.getByText(/Try again in/).isVisible()) break;
      await page.getByLabel('Email address').fill('ann@example.com');
      await page.getByLabel(/^Password/).fill('wrong password');
      const answered = page.waitForResponse((answer) => answer.url().endsWith('/api/session') && answer.request().method() === 'POST');
      await button.click();
      await answered;
      await page.getByRole('alert').filter({ hasText: /\S/ }).waitFor();
    }
    await page.getByText(/Too many attempts. Try again in \d+ seconds?/).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Sign in', exact: true }).isDisabled());
  });
});

story('A page of another origin changes and reads nothing', async ({ page, context, signIn, allow, step }) => {
  await signIn();
  const before = await rest('GET', '/api/policies');
  const foreign = await context.newPage();
  // Another port of the same host: the cookie is sent along where SameSite permits it.
  await foreign.route('http://localhost:1/**', (route) => route.fulfill({ contentType: 'text/html', body: '<h1>Foreign</h1>' }));
  await foreign.goto('http://localhost:1/');
  const outcome = await foreign.evaluate(async (url) => {
    const tried = [];
    for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain']) {
      tried.push(await fetch(`${url}/api/policies`, { method: 'POST', credentials: 'include', headers: { 'Content-Type': type }, body: '{"id":"stolen","name":"stolen","active":true}' }).then((a) => a.text(), () => 'failed'));
    }
    tried.push(await fetch(`${url}/api/apis`, { credentials: 'include' }).then((a) => a.text(), () => 'failed'));
    return tried;
  }, product.url);
  assert.deepEqual(outcome, ['failed', 'failed', 'failed', 'failed']);
  await foreign.evaluate((url) => {
    const form = document.createElement('form');
    form.method = 'POST';
    form.enctype = 'text/plain';
    form.action = `${url}/api/policies`;
    const input = document.createElement('input');
    input.name = '{"id":"stolen","name":"stolen","active":true,"x":"';
    input.value = '"}';
    form.append(input);
    document.body.append(form);
    form.submit();
  }, product.url);
  await foreign.waitForURL(`${product.url}/**`);
  assert.match(await foreign.content(), /Error/);
  assert.deepEqual(await rest('GET', '/api/policies'), before);
  await foreign.close();
  allow(/localhost:1/, /Access to fetch|net::ERR_FAILED|status of 40\d|status of 415/);
  await step('the session is still there', async () => {
    await page.reload();
    await page.getByRole('heading', { level: 1 }).waitFor();
  });
}, { origins: ['http://localhost:1'] });
