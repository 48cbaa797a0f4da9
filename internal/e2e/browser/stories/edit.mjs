// What is being edited survives: an end of the session, another editor, a lost database.
import { readFileSync } from 'node:fs';
import { assert, eventually, newUser, product, rest, story } from '../harness.mjs';

const editor = () => newUser('editor');
const sheetOf = (page) => page.getByRole('dialog', { name: /^Review/ });
const fieldOf = (page, path) => page.locator(`[data-path="${path}"]`);
const policyOf = (id) => rest('GET', `/api/portal/policies/${id}`);

/** Makes an API and a policy for it; returns the API's id, which is the policy's as well. */
async function plan(id, limits) {
  await rest('POST', '/api/apis', { api_id: id, name: id, proxy: { listen_path: `/${id}/`, target_url: product.upstream, strip_listen_path: true } });
  await rest('POST', '/api/portal/policies', { id, name: id, access_rights: { [id]: { api_id: id, api_name: id, versions: ['Default'] } }, ...limits });
}

/** Ends all sessions of a user when the page makes a call: not earlier, so that what leads to it is done. */
async function endSessionsAt(page, method, url, user) {
  let ended = false;
  await page.route(url, async (route) => {
    if (route.request().method() === method && !ended) {
      ended = true;
      await rest('POST', `/api/users/${user.id}/actions/reset`, { new_password: user.password });
    }
    await route.continue();
  });
}

async function signInAgain(page, user) {
  const over = page.getByRole('dialog', { name: 'Your session has ended' });
  await over.waitFor();
  assert.equal(await over.getByLabel('Email address').inputValue(), user.email);
  await over.locator('input[type=password]:focus').waitFor();
  await page.keyboard.type(user.password);
  await over.getByRole('button', { name: 'Sign in', exact: true }).click(); // which nothing covers
  await over.waitFor({ state: 'detached' });
}

story('A session ends during an edit', async ({ page, step, signIn, open, allow }) => {
  allow(/status of 401/);
  await plan('lasting', { rate: 100, per: 60 });
  const ann = await editor();
  await signIn(ann);
  await step('sign-in lies over the form', async () => {
    await open('/policies/lasting');
    await endSessionsAt(page, 'POST', '**/api/config/effect*', ann); // which checks what is typed
    await fieldOf(page, 'rate').fill('70');
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  });
  await step('after it the draft is there', async () => {
    await signInAgain(page, ann);
    assert.equal(await fieldOf(page, 'rate').inputValue(), '70');
    await page.getByText('Not saved yet').waitFor();
  });
  await step('and with the review sheet open, over that', async () => {
    await page.keyboard.press('Control+s');
    await sheetOf(page).getByText('70', { exact: true }).waitFor();
    await sheetOf(page).getByLabel('Reason').fill('fewer calls');
    await endSessionsAt(page, 'PUT', '**/api/portal/policies/lasting*', ann);
    await sheetOf(page).getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
    const reached = await page.locator('button', { hasText: 'Publishing' }).evaluate((button) => {
      const { x, y, width, height } = button.getBoundingClientRect();
      return button.contains(document.elementFromPoint(x + width / 2, y + height / 2));
    });
    assert.equal(reached, false, 'the sheet is covered');
  });
  await step('the publication goes on by itself', async () => {
    await signInAgain(page, ann);
    await sheetOf(page).waitFor({ state: 'detached' });
  });
  await eventually('the publication', async () => assert.equal((await policyOf('lasting')).rate, 70));
});

story('A draft after a reload', async ({ page, step, signIn, open }) => {
  await plan('reloaded', { rate: 100, per: 60 });
  await signIn(await editor());
  await open('/policies/reloaded');
  page.on('dialog', (asked) => void asked.accept());
  await step('the offer names its age', async () => {
    await fieldOf(page, 'rate').fill('55');
    await page.getByText('Not saved yet').waitFor();
    await page.reload();
    await page.getByText(/Your changes from .* were kept/).waitFor();
    assert.equal(await fieldOf(page, 'rate').inputValue(), '55');
  });
  await step('discarded, it is gone', async () => {
    await page.getByRole('button', { name: 'Discard them' }).first().click();
    assert.equal(await fieldOf(page, 'rate').inputValue(), '100');
  });
});

story('Two people edit', async ({ page, browser, step, signIn, open, allow }) => {
  allow(/status of 409/);
  await plan('shared', { rate: 100, per: 60, quota_max: 1000, quota_renewal_rate: 3600 });
  await signIn(await editor());
  const elsewhere = await (await browser.newContext()).newPage();
  await signIn(await editor(), elsewhere);
  // The other one changes members while this page has a draft.
  const other = async (values) => {
    await elsewhere.goto(`${product.url}/policies/shared`);
    for (const [path, value] of Object.entries(values)) await fieldOf(elsewhere, path).fill(value);
    await elsewhere.keyboard.press('Control+s');
    await sheetOf(elsewhere).getByRole('button', { name: 'Publish' }).click();
    await sheetOf(elsewhere).waitFor({ state: 'detached' });
  };
  const publish = () => sheetOf(page).getByRole('button', { name: 'Publish' }).click();
  await step('a disjoint change is taken over and named', async () => {
    await open('/policies/shared');
    await fieldOf(page, 'rate').fill('50');
    await page.getByText('Not saved yet').waitFor();
    await other({ quota_max: '2000' });
    await page.keyboard.press('Control+s');
    await publish();
    await sheetOf(page).getByText('These of their changes were taken over').waitFor();
    const taken = sheetOf(page).getByRole('alert').getByRole('row');
    await taken.filter({ hasText: 'quota_max' }).filter({ hasText: '1000' }).filter({ hasText: '2000' }).waitFor();
    assert.equal(await sheetOf(page).getByRole('radio').count(), 0, 'nothing is to be decided');
  });
  assert.equal((await policyOf('shared')).rate, 100, 'nothing is published without a second click');
  await step('both changes are published', async () => {
    await publish();
    await sheetOf(page).waitFor({ state: 'detached' });
  });
  const merged = await policyOf('shared');
  assert.deepEqual([merged.rate, merged.quota_max], [50, 2000]);

  await step('overlapping changes ask', async () => {
    await fieldOf(page, 'rate').fill('30');
    await fieldOf(page, 'max_query_depth').fill('5');
    await page.getByText('Not saved yet').waitFor();
    await other({ rate: '40', quota_renewal_rate: '7200' });
    await page.keyboard.press('Control+s');
    await publish();
    await sheetOf(page).getByText('These were changed by both').waitFor();
    assert.ok(await sheetOf(page).getByRole('button', { name: 'Publish' }).isDisabled(), 'one has to decide');
    await sheetOf(page).getByRole('group').filter({ hasText: 'rate' }).getByText('theirs: 40').waitFor();
  });
  await step('one stays, and the rest of both is there', async () => {
    await sheetOf(page).getByRole('radio', { name: /mine: 30/ }).check();
    await sheetOf(page).getByRole('row').filter({ hasText: 'rate' }).filter({ hasText: '40' }).filter({ hasText: '30' }).waitFor();
    await publish();
    await sheetOf(page).waitFor({ state: 'detached' });
  });
  const decided = await policyOf('shared');
  assert.deepEqual([decided.rate, decided.max_query_depth, decided.quota_max, decided.quota_renewal_rate], [30, 5, 2000, 7200]);

  await step('theirs is kept, and nothing is left to publish', async () => {
    await fieldOf(page, 'rate').fill('31');
    await page.getByText('Not saved yet').waitFor();
    await other({ rate: '41' });
    await page.keyboard.press('Control+s');
    await publish();
    await sheetOf(page).getByRole('radio', { name: /theirs: 41/ }).check();
    await publish();
    await sheetOf(page).waitFor({ state: 'detached' });
    assert.equal(await fieldOf(page, 'rate').inputValue(), '41');
    await page.getByText('Not saved yet').waitFor({ state: 'detached' });
  });
  assert.equal((await policyOf('shared')).rate, 41);
});

story('A limit is lowered', async ({ page, step, signIn, open }) => {
  await plan('lowered', { rate: 1000, per: 3600 });
  const { key } = await rest('POST', '/api/keys', { alias: 'acme-prod', apply_policies: ['lowered'] });
  const call = async () => (await fetch(`${product.gateway}/lowered/x`, { headers: { Authorization: key } })).status;
  await eventually('the key to be let in', async () => assert.equal(await call(), 200));
  await signIn();
  await step('the sheet names the keys', async () => {
    await open('/policies/lowered');
    await fieldOf(page, 'rate').fill('1');
    await page.keyboard.press('Control+s');
    await sheetOf(page).getByText(/The policy has 1 key\b/).waitFor();
    await sheetOf(page).getByRole('link', { name: 'acme-prod' }).waitFor();
  });
  await step('it is published, and every gateway has it', async () => {
    await sheetOf(page).getByLabel('Reason').fill('the contract ended');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/Published as revision \d+/).waitFor();
    await page.getByText(/(\d+) of \1 gateways have it/).waitFor();
  });
  assert.equal(await call(), 429);
  await step('the history has the reason', async () => {
    await open('/changes');
    await page.getByText('the contract ended').first().waitFor();
  });
});

story('The database goes away', async ({ page, step, signIn, open, allow }) => {
  allow(/status of 50[03]/);
  await plan('kept', { rate: 100, per: 60 });
  await signIn(await editor());
  const revisions = async () => (await rest('GET', '/api/config/revisions')).revisions.filter((one) => one.reason === 'while it was away');
  const database = new Away();
  await step('the failure is shown, and the sheet stays', async () => {
    await open('/policies/kept');
    await fieldOf(page, 'rate').fill('60');
    await page.keyboard.press('Control+s');
    await sheetOf(page).getByLabel('Reason').fill('while it was away');
    database.begin();
    await eventually('the admin to miss it', async () => assert.ok((await fetch(`${product.url}/api/policies`, { headers: { Authorization: product.key } })).status >= 500));
    await sheetOf(page).getByRole('button', { name: 'Publish' }).click();
    await sheetOf(page).getByRole('alert').waitFor();
    assert.equal(await sheetOf(page).getByLabel('Reason').inputValue(), 'while it was away');
  });
  await step('another try works when it is back', async () => {
    database.end();
    await eventually('the admin to have it again', () => policyOf('kept'));
    await sheetOf(page).getByRole('button', { name: 'Publish' }).click();
    await sheetOf(page).waitFor({ state: 'detached' });
  });
  assert.equal((await policyOf('kept')).rate, 60);
  assert.equal((await revisions()).length, 1, 'one revision was made');

  await step('a publication whose answer is lost is made once', async () => {
    let lost = 0;
    await page.route('**/api/portal/policies/kept*', async (route) => {
      if (route.request().method() !== 'PUT' || lost++ > 0) return route.continue();
      await route.fetch(); // the server carries it out, and the browser hears nothing
      return route.abort();
    });
    await fieldOf(page, 'rate').fill('61');
    await page.keyboard.press('Control+s');
    await sheetOf(page).getByLabel('Reason').fill('while it was away');
    await sheetOf(page).getByRole('button', { name: 'Publish' }).click();
    await sheetOf(page).getByText(/The server did not answer/).waitFor();
    await sheetOf(page).getByRole('button', { name: 'Publish' }).click();
    await sheetOf(page).waitFor({ state: 'detached' });
  }, allow(/net::ERR_FAILED/, /status of 409/));
  assert.equal((await policyOf('kept')).rate, 61);
  assert.equal((await revisions()).length, 2, 'one more was made');
});

/** The database of this product: it is killed, and whenever it comes back, until end(). */
class Away {
  pid() {
    try {
      return Number(readFileSync(`${product.data}/pg/postmaster.pid`, 'utf8').split('\n')[0]);
    } catch {
      return 0; // it is between two processes
    }
  }

  begin() {
    const kill = () => {
      const pid = this.pid();
      try {
        if (pid > 0 && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${product.data}/pg`)) process.kill(pid, 'SIGKILL');
      } catch {
        // it has ended
      }
    };
    kill();
    this.timer = setInterval(kill, 20);
  }

  end() {
    clearInterval(this.timer);
  }
}
