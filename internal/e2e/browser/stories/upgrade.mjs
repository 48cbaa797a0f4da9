// product: --demo
// setting: admin.public_url=http://{front}/sluice
// setting: portal.public_url=http://{front}/sluice/portal
import { createServer, request } from 'node:http';
import { after } from 'node:test';
import { assert, product, rest, story } from '../harness.mjs';

// A proxy in front of the admin, below a path. After an upgrade all assets have other
// names, as those of another build do: the hash in a name is turned round.
const base = '/sluice';
const proxy = { strips: true, upgraded: false, outside: [], pages: 0 };
const turned = (text) => text.replace(/-([\w-]{8})(?=\.(js|css)\b)/g, (_, hash) => '-' + [...hash].reverse().join(''));
const admin = new URL(product.url);

const server = createServer((asked, answer) => {
  if (!asked.url.startsWith(base + '/')) {
    proxy.outside.push(asked.url);
    return answer.writeHead(404).end();
  }
  let path = asked.url.slice(base.length);
  if (asked.headers['sec-fetch-dest'] === 'document') proxy.pages++;
  if (proxy.upgraded && path.startsWith('/assets/')) path = turned(path);
  const headers = { ...asked.headers, 'accept-encoding': 'identity' };
  if (proxy.upgraded) delete headers['if-none-match'];
  const sent = request({ host: admin.hostname, port: admin.port, method: asked.method, path: proxy.strips ? path : base + path, headers }, async (got) => {
    const parts = [];
    for await (const part of got) parts.push(part);
    let body = Buffer.concat(parts);
    if (proxy.upgraded && /html|javascript|css/.test(got.headers['content-type'] ?? '')) body = Buffer.from(turned(body.toString()));
    const { 'content-length': _, 'transfer-encoding': __, etag, ...rest } = got.headers;
    if (etag && !proxy.upgraded) rest.etag = etag;
    answer.writeHead(got.statusCode, rest).end(body);
  });
  sent.on('error', () => answer.destroy());
  asked.pipe(sent);
});
await new Promise((listening) => server.listen(Number(product.front.split(':')[1]), '127.0.0.1', listening));
after(() => server.close());
product.url = `http://${product.front}${base}`;

/** The paths of all links, forms, scripts and styles of a page that are not below the base path. */
const astray = (page) =>
  page.evaluate(
    (base) =>
      [...document.querySelectorAll('[href], [src], [action]')]
        .flatMap((one) => ['href', 'src', 'action'].map((name) => one.getAttribute(name)))
        .filter((value) => value && !/^(#|data:|blob:|mailto:)/.test(value))
        .map((value) => new URL(value, location.href))
        .filter((url) => url.origin === location.origin && !url.pathname.startsWith(base + '/'))
        .map(String),
    base,
  );

for (const strips of [true, false]) {
  story(`Below a path, behind a proxy that ${strips ? 'removes' : 'keeps'} it, all links are right`, async ({ page, step, signIn, open }) => {
    proxy.strips = strips;
    proxy.outside = [];
    await step('a link to sign in is below the path', async () => {
      const { link } = await rest('POST', '/api/users/me/actions/enter');
      assert.ok(link.startsWith(product.url + '/enter#'), link);
      await signIn();
    });
    await step('the navigation leads to pages below it', async () => {
      await open('/');
      for (const [name, path] of [['APIs', '/apis'], ['Policies', '/policies'], ['Keys', '/keys'], ['Traffic', '/traffic'], ['Settings', '/settings']]) {
        await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: new RegExp(`^${name}`) }).first().click();
        await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
        assert.equal(new URL(page.url()).pathname, base + path);
        assert.deepEqual(await astray(page), []);
      }
    });
    await step('a row, a reload and the way back', async () => {
      await open('/apis');
      await page.getByRole('table').getByRole('link').first().click();
      await page.waitForURL((url) => /^\/sluice\/apis\/./.test(url.pathname));
      await page.getByRole('heading', { level: 1 }).waitFor();
      const there = page.url();
      await page.reload();
      await page.getByRole('heading', { level: 1 }).waitFor();
      assert.equal(page.url(), there);
      assert.deepEqual(await astray(page), []);
      await page.goBack();
      await page.getByRole('heading', { level: 1, name: 'APIs' }).waitFor();
    });
    await step('the portal is below it, too', async () => {
      await page.goto(product.url + '/portal/');
      await page.locator('h1').waitFor();
      assert.deepEqual(await astray(page), []);
      const links = await page.evaluate(() => [...document.querySelectorAll('a[href]')].map((one) => one.href).filter((href) => href.startsWith(location.origin)));
      for (const link of new Set(links.map((one) => one.split('#')[0]))) {
        const answer = await page.request.get(link);
        assert.ok(answer.ok(), `${link}: ${answer.status()}`);
      }
    });
    await step('nothing was asked for outside of it', async () => assert.deepEqual(proxy.outside, []));
  });
}

story('A tab that outlives an upgrade is loaded again once, and keeps its drafts', async ({ page, step, signIn, open }) => {
  proxy.strips = true;
  await signIn();
  const main = page.getByRole('navigation', { name: 'Main' });
  const name = page.getByLabel('Name', { exact: true });
  const asked = [];
  page.on('dialog', (dialog) => (asked.push(dialog.type()), dialog.accept()));
  await step('a draft is begun', async () => {
    await open('/policies/demo');
    await name.click();
    await name.fill('Demo of tomorrow');
    await page.getByText('Not saved yet').waitFor();
  });
  await step('after the upgrade, the script of the next page is gone: the tab is loaded again, without a question', async () => {
    proxy.upgraded = true;
    proxy.pages = 0;
    const loaded = page.waitForEvent('load');
    await main.getByRole('link', { name: /^Users/ }).hover();
    await loaded;
    await page.getByText(/Your changes from .* were kept/).waitFor();
    assert.equal(await name.inputValue(), 'Demo of tomorrow');
    assert.deepEqual(asked, []);
  });
  await step('the page opens, in the same load', async () => {
    await main.getByRole('link', { name: /^Users/ }).click(); // asks, for the changes are not saved
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor();
    assert.deepEqual(asked, ['confirm']);
    assert.equal(proxy.pages, 1);
  });
  await step('the draft is still there', async () => {
    await main.getByRole('link', { name: /^Policies/ }).click();
    await page.getByRole('table').getByRole('link', { name: 'Demo', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Demo' }).waitFor();
    assert.equal(await name.inputValue(), 'Demo of tomorrow');
    assert.equal(proxy.pages, 1);
  });
}, { allow: [/status of 404 .*\/assets\//, /Refused to apply style from .*\/assets\//, /Failed to fetch dynamically imported module/] });
