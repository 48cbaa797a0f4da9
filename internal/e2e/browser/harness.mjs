// What stories share: a browser, a product, and the checks after every step.
//
// Environment, set by browser_test.go: SLUICE_URL and SLUICE_GATEWAY (addresses),
// SLUICE_KEY (access key of the first admin), SLUICE_LINK (one-time link of the banner),
// SLUICE_UPSTREAM (an upstream that echoes), SLUICE_DATA (the data directory),
// SLUICE_FRONT (a free address), SLUICE_SECRETS (a file, see neverLogged), SLUICE_CHROMIUM,
// SLUICE_SHOTS (a directory: take screenshots), SLUICE_TRACES (a directory for the traces
// of what fails).
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';

const env = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The product under test. */
export const product = { url: env.SLUICE_URL, gateway: env.SLUICE_GATEWAY, key: env.SLUICE_KEY, link: env.SLUICE_LINK, upstream: env.SLUICE_UPSTREAM, data: env.SLUICE_DATA, front: env.SLUICE_FRONT };

/** Fails the test if the product has written a secret to its log. Returns the secret. */
export function neverLogged(secret) {
  appendFileSync(env.SLUICE_SECRETS, secret + '\n');
  return secret;
}

/** Calls the REST with an access key: by default that of the first admin. */
export async function rest(method, path, body, { key = product.key, status = 200 } = {}) {
  const answer = await fetch(product.url + path, {
    method,
    headers: { Authorization: key, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  assert.ok(answer.status === status || (status === 200 && answer.status === 201), `${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

/** Repeats fn until it does not throw, and returns what it returns; for what a page does not show. */
export async function eventually(what, fn, within = 60_000) {
  for (const began = Date.now(); ; ) {
    try {
      return await fn();
    } catch (cause) {
      if (Date.now() - began > within) throw new Error(`waited for ${what}`, { cause });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

let users = 0;

/** Makes a user with a role and a password. */
export async function newUser(role, password = 'correct horse battery') {
  const email = `${role}${++users}@example.com`;
  const made = await rest('POST', '/api/users', { email_address: email, first_name: role, last_name: `Number ${users}`, role });
  const id = made.Meta ?? made.ID;
  await rest('POST', `/api/users/${id}/actions/reset`, { new_password: password });
  return { id, email, password, key: made.access_key };
}

/** The address of a one-time link that signs a user in; by default the first admin. */
export async function enterLink(id = 'me') {
  const { link } = await rest('POST', `/api/users/${id}/actions/enter`);
  return product.url + '/enter' + new URL(link).hash;
}

let started; // the browser of a file

const start = () =>
  chromium.launch({
    executablePath: env.SLUICE_CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
  });
after(async () => (await started)?.close());

/**
 * One story: a test with a context of its own, which shares nothing with others. `run` gets { page, context, step, allow,
 * signIn, shot, open }.
 *
 * step(name, fn) carries fn out and then checks: no violation of the policy, console line,
 * page error or request to another origin, and no finding of axe. `allow` takes regular
 * expressions of console lines that a story causes on purpose, such as /status of 401/.
 */
export function story(name, run, o = {}) {
  test(name, { timeout: o.timeout ?? 300_000 }, async (t) => {
    const browser = await (started ??= start());
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', permissions: o.permissions ?? [], ...o.context });
    if (env.SLUICE_TRACES) await context.tracing.start({ screenshots: true, snapshots: true });
    let failed = true;
    try {
      const watched = new Watched(context, o);
      const page = await context.newPage();
      page.setDefaultTimeout(45_000);
      await run({ t, page, context, browser, allow: (...lines) => watched.allowed.push(...lines), ...tools(t, page, watched, name, o.context?.javaScriptEnabled !== false) });
      failed = false;
    } finally {
      if (env.SLUICE_TRACES) await context.tracing.stop({ path: failed ? `${env.SLUICE_TRACES}/${fileName(name)}.zip` : undefined });
      await Promise.all(browser.contexts().map((one) => one.close())); // those that the story has opened too
    }
  });
}

const fileName = (name) => name.toLowerCase().replace(/[^a-z0-9]+/g, '-').slice(0, 60);

function tools(t, page, watched, name, scripts) {
  const shot = async (what) => env.SLUICE_SHOTS && page.screenshot({ fullPage: true, path: `${env.SLUICE_SHOTS}/${fileName(`${name} ${what}`)}.png` });
  const settled = async () => {
    await page.waitForLoadState('domcontentloaded');
    if (!scripts) return;
    await page.locator('[data-loading]').first().waitFor({ state: 'detached' });
    // Colours that are on their way to others have no contrast of their own.
    await page.evaluate(() => Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {}))));
  };
  const step = (what, fn) =>
    t.test(what, async () => {
      watched.failed = what; // what follows cannot work either
      await fn();
      await settled();
      await shot(what);
      watched.check();
      await (scripts ? accessible(page) : accessibleCopy(page));
      watched.failed = '';
    }).then(() => assert.equal(watched.failed, '', 'a step failed'));
  const open = async (path) => {
    await page.goto(product.url + path);
    await page.locator('h1').first().waitFor();
  };
  /** Signs in by a one-time link: the first admin, or a user of newUser. */
  const signIn = async (user, on = page) => {
    await on.goto(await enterLink(user?.id));
    await on.locator('#nav').waitFor({ state: 'attached' }); // hidden on a phone
  };
  return { step, shot, open, signIn, settled };
}

/** Everything that a browser says which it should not. */
class Watched {
  constructor(context, o) {
    this.allowed = [...(o.allow ?? [])];
    this.lines = [];
    const origins = new Set([product.url, product.gateway, ...(o.origins ?? [])].filter(Boolean).map((url) => new URL(url).origin));
    context.on('console', (message) => this.lines.push(`console ${message.type()}: ${message.text()} (${message.location().url})`));
    context.on('weberror', (error) => this.lines.push(`page error: ${error.error().message}`));
    context.on('request', (request) => {
      const url = new URL(request.url());
      if (/^https?:$/.test(url.protocol) && !origins.has(url.origin)) this.lines.push(`request to another origin: ${url}`);
    });
  }

  /** Fails when there is something that no one expects. */
  check() {
    // A browser that has no session asks for it once, and the answer 401 is a console line.
    const expected = [/status of 401 \(Unauthorized\) \(\S*\/api\/session\)/, ...this.allowed];
    const wrong = this.lines.filter((line) => !expected.some((one) => one.test(line)));
    this.lines = [];
    assert.deepEqual(wrong, [], 'the browser reports something');
  }
}

/** Fails when axe finds something on the page. */
export async function accessible(page) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) {
    await page.evaluate(`${axe}; undefined`); // as the debugger does: the policy forbids it to pages
  }
  const findings = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => `${node.target.join(' ')} ${node.html.slice(0, 160)} ${node.failureSummary}`).join(' | ')}`);
  });
  assert.deepEqual(findings, [], `axe on ${page.url()}`);
}

/** The same for a page on which scripts are switched off, those of axe too. */
async function accessibleCopy(page) {
  const html = (await page.content()).replace(/<script\b[^>]*>.*?<\/script>|<\/?noscript>/gs, '');
  const context = await page.context().browser().newContext({ viewport: page.viewportSize() });
  try {
    const copy = await context.newPage();
    const url = page.url().replace(/#.*/s, '');
    await copy.route(url, (route) => route.fulfill({ contentType: 'text/html', body: html }));
    await copy.goto(url);
    await accessible(copy);
  } finally {
    await context.close();
  }
}

export { assert };
