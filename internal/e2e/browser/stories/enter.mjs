import { assert, enterLink, eventually, newUser, product, rest, story } from '../harness.mjs';

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

story('First steps', async ({ t, page, context, step, open, allow }) => {
  allow(/status of 401 .*\/api\/session/);
  const effort = { clicks: 0, fields: 0 };
  await context.exposeFunction('counted', (what) => void effort[what]++);
  await context.addInitScript(() => {
    const typed = new WeakSet();
    addEventListener('click', (event) => event.isTrusted && globalThis.counted('clicks'), true);
    addEventListener('input', (event) => {
      if (!event.isTrusted || typed.has(event.target)) return;
      typed.add(event.target);
      globalThis.counted('fields');
    }, true);
  });
  const home = await context.newPage(); // stays open beside the page that is worked on
  const shows = (name, state) => home.getByRole('listitem').filter({ hasText: name }).filter({ has: home.getByLabel(state, { exact: true }) }).waitFor();
  await step('the link of the terminal leads to the account, and home to the checklist', async () => {
    await page.goto(await enterLink());
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor();
    await home.goto(product.url + '/');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Home' }).click();
    for (const name of ['Put an API', 'Make a key', 'Make a first call']) await shows(name, 'to do');
  });
  await step('an upstream becomes an API', async () => {
    await page.getByRole('link', { name: 'New API' }).click();
    await page.getByLabel('URL of the upstream').fill(product.upstream);
    await page.getByRole('button', { name: 'Probe' }).click();
    await page.getByText(/It answered with status 200/).waitFor();
    await page.getByRole('button', { name: 'Review' }).click();
    await page.getByRole('dialog', { name: /^Review/ }).getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('heading', { level: 1, name: 'api' }).waitFor();
  });
  await shows('Put an API', 'done');
  await shows('Make a key', 'to do');
  let address;
  await step('and a key for it is made', async () => {
    await page.getByRole('link', { name: 'New key' }).click();
    await page.getByRole('button', { name: 'Make the key' }).click();
    const sheet = page.getByRole('dialog', { name: /^Key for/ });
    address = /curl (\S+) -H "Authorization: \$KEY"/.exec(await sheet.locator('pre').innerText())[1];
  });
  await shows('Make a key', 'done');
  await shows('Make a first call', 'to do');
  const key = (await page.locator('[data-secret]').innerText()).trim();
  await eventually('the API to answer', async () => {
    const answer = await fetch(address, { headers: { Authorization: key } });
    assert.equal(answer.status, 200, await answer.text());
  });
  assert.equal((await fetch(address)).status, 401, 'without the key it is refused');
  t.diagnostic(`from the link to an API that answers with a key: ${effort.clicks} clicks, ${effort.fields} typed field`);
  assert.ok(effort.clicks <= 8 && effort.fields <= 1, `${effort.clicks} clicks and ${effort.fields} fields are more than there were`);
  await home.getByRole('heading', { name: 'First steps' }).waitFor({ state: 'detached' });
  await step('the sheet of the key is closed when it is stored', async () => {
    await page.getByLabel('It is stored').check();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('heading', { level: 2, name: /Quota and rate/ }).waitFor();
  });
  await step('and the checklist is gone', async () => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Home' }).click();
    await page.getByRole('heading', { name: 'Changes' }).waitFor();
    await page.getByRole('heading', { name: 'First steps' }).waitFor({ state: 'detached' }); // after what it showed before was read again
  });
});
