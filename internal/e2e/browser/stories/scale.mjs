// fill: 10000 APIs, 100000 keys
import { assert, product, rest, story } from '../harness.mjs';

const count = new Intl.NumberFormat('en').format;

/** The middle of several durations, in whole milliseconds. */
const median = (all) => Math.round(all.sort((a, b) => a - b)[Math.floor(all.length / 2)] * 10) / 10;

/** Collects the calls of a page, and how large the answer to one of them is. */
function watch(page) {
  const calls = [];
  page.on('request', (request) => new URL(request.url()).pathname.startsWith('/api/') && calls.push(request));
  return calls;
}

const table = (page, name) => page.getByRole('table', { name });
const firstOf = async (list) => (await list.locator('tbody a').first().innerText()).trim();

/** Waits until the first row is another one, and returns its name. */
async function otherThan(list, before) {
  await list.page().waitForFunction(([label, text]) => {
    const found = document.querySelector(`table[aria-label="${label}"]:not([aria-busy]) tbody a`);
    return found && found.textContent.trim() !== text;
  }, [await list.getAttribute('aria-label'), before]);
  return firstOf(list);
}

for (const one of [
  { path: '/apis', name: 'APIs', total: /^10,000 APIs$/, column: 'Name', q: 'api 977', finds: /^API 977/, pages: 200 },
  { path: '/keys', name: 'Keys', total: /^10,000\+ keys$/, column: 'Key', q: 'key0977', finds: /^key0977/, pages: 201 },
]) {
  story(`The list of ${one.name} is searched, sorted and paged by the server`, async ({ page, step, signIn, open }) => {
    await signIn();
    const list = table(page, one.name);
    let first;
    await step('a page has 50 rows in at most 60 KB, without a call for each row', async () => {
      const calls = watch(page);
      const answer = page.waitForResponse((got) => got.url().includes(`/api${one.path}?`) && got.url().includes('page_size=50'));
      await open(one.path);
      await list.waitFor();
      assert.ok((await (await answer).body()).length <= 60_000);
      assert.equal(await list.locator('tbody tr').count(), 50);
      await page.getByText(one.total).waitFor();
      assert.ok(calls.length <= 8, `${calls.length} calls: ${calls.map((call) => call.url()).join(' ')}`);
      first = await firstOf(list);
    });
    await step('it is sorted, and the address says so', async () => {
      const heading = list.getByRole('columnheader', { name: one.column });
      await heading.getByRole('button').click();
      await page.waitForURL(/sort=name/);
      await heading.getByRole('button').click();
      await page.waitForURL(/sort=-name/);
      first = await otherThan(list, first);
      assert.equal(await heading.getAttribute('aria-sort'), 'descending');
    });
    let second;
    await step('the next page, and back', async () => {
      await page.getByRole('button', { name: 'Next page' }).click();
      second = await otherThan(list, first);
      assert.equal(new URL(page.url()).searchParams.get('p'), '2');
      await page.goBack();
      assert.equal(await otherThan(list, second), first);
      await page.goForward();
      assert.equal(await otherThan(list, first), second);
    });
    await step('a row, and back to the same page in the same order', async () => {
      const at = page.url();
      await list.locator('tbody a').first().click();
      await page.getByRole('heading', { level: 1, name: second, exact: true }).waitFor();
      await page.goBack();
      await list.waitFor();
      assert.equal(page.url(), at);
      assert.equal(await firstOf(list), second);
    });
    await step('a search begins at the first page', async () => {
      await page.getByRole('search').getByRole('searchbox').fill(one.q);
      await page.waitForURL((url) => url.searchParams.get('q') === one.q && !url.searchParams.has('p'));
      assert.match(await otherThan(list, second), one.finds);
      for (const name of await list.locator('tbody tr td:nth-child(2) a').allInnerTexts()) assert.match(name, one.finds);
    });
    await step('what does not exist is not found, and the filters are cleared', async () => {
      await page.getByRole('search').getByRole('searchbox').fill('nothing like this');
      await page.getByText('Nothing matches.').waitFor();
      await page.getByRole('button', { name: 'Clear the filters' }).first().click();
      await page.getByText(one.total).waitFor();
    });
  });
}

story('The palette finds one of many', async ({ page, step, signIn, open }) => {
  await signIn();
  await open('/');
  await step('by a part of its name', async () => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill('API 9771');
    await page.getByRole('option', { name: /API 9771/ }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'API 9771' }).waitFor();
  });
});

// Durations depend on the machine: SLUICE_FIGURES=1 prints them, and no test asserts them.
const figures = process.env.SLUICE_FIGURES ? story : () => {};
figures('Figures', async ({ t, page, context, signIn, open }) => {
  const say = (what, figure) => t.diagnostic(`${what}: ${figure}`);
  await signIn();
  for (const path of ['/api/apis?view=row&page_size=50', '/api/apis?view=row&page_size=50&sort=-name', '/api/apis?view=row&page_size=50&q=api+977', '/api/apis?view=row&page_size=50&sort=-updated_at&p=100', '/api/keys?view=row&page_size=50', '/api/keys?view=row&page_size=50&sort=-name', '/api/keys?view=row&page_size=50&q=key0977', '/api/keys?view=row&page_size=50&p=150', '/api/search?q=api+977', '/api/pulse']) {
    const took = [];
    let bytes = 0;
    for (let n = 0; n < 21; n++) {
      const began = performance.now();
      bytes = JSON.stringify(await rest('GET', path)).length;
      took.push(performance.now() - began);
    }
    say(`answer of ${path}`, `${median(took)} ms, ${count(bytes)} bytes`);
  }
  const cold = async () => {
    const other = await context.newPage();
    const session = await context.newCDPSession(other);
    await session.send('Network.setCacheDisabled', { cacheDisabled: true });
    await session.send('Emulation.setCPUThrottlingRate', { rate: 4 });
    await session.send('Network.emulateNetworkConditions', { offline: false, latency: 40, downloadThroughput: 10e6 / 8, uploadThroughput: 10e6 / 8 });
    const began = performance.now();
    await other.goto(product.url + '/', { waitUntil: 'commit' });
    await other.locator('h1').first().waitFor();
    const took = performance.now() - began;
    await other.waitForLoadState('networkidle');
    const loaded = await other.evaluate(() => performance.getEntriesByType('resource').map((one) => ({ name: new URL(one.name).pathname, size: one.encodedBodySize })));
    await other.close();
    return { took, loaded };
  };
  const starts = [];
  for (let n = 0; n < 3; n++) starts.push(await cold());
  const assets = starts[0].loaded.filter((one) => one.name.startsWith('/assets/'));
  const sum = (end) => (assets.filter((one) => one.name.endsWith(end)).reduce((all, one) => all + one.size, 0) / 1024).toFixed(1);
  say('heading of the first page, cold, CPU/4, 10 Mbit/s, 40 ms', `${median(starts.map((one) => one.took))} ms`);
  say('first page', `${sum('.js')} KiB of scripts, ${sum('.css')} KiB of styles, ${assets.length} assets`);

  await open('/');
  const slow = await context.newCDPSession(page);
  for (const rate of [1, 4]) {
    await slow.send('Emulation.setCPUThrottlingRate', { rate });
    const took = {};
    for (let n = 0; n < 6; n++) {
      for (const [to, seen] of [['APIs', 'table[aria-label="APIs"] tbody a'], ['Keys', 'table[aria-label="Keys"] tbody a'], ['Policies', 'h1'], ['Home', 'h1']]) {
        // Measured within the page, from the click to the frame that has the data.
        const link = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: new RegExp(`^${to}`) }).first();
        const ms = await link.evaluate(
          (element, [title, what]) =>
            new Promise((resolve) => {
              const began = performance.now();
              const look = () => {
                if (document.querySelector('h1')?.textContent === title && document.querySelector(what) && !document.querySelector('[data-loading]')) requestAnimationFrame(() => resolve(performance.now() - began));
                else requestAnimationFrame(look);
              };
              element.click();
              look();
            }),
          [to, seen],
        );
        if (n > 0) (took[to] ??= []).push(ms); // the first time loads the script
      }
    }
    say(`warm route change with its data, CPU/${rate}`, Object.entries(took).map(([to, all]) => `${to} ${median(all)} ms`).join(', '));
  }
});
