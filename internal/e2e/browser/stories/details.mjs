// product: --demo
// setting: usage.flush=200ms
// setting: gateway.samples_per_second=100
import { readFileSync } from 'node:fs';
import { accessible, assert, eventually, product, rest, story } from '../harness.mjs';

// Every page of one object, as the registry of the UI lists them; pages.mjs has those that need no id.
const index = readFileSync(new URL('../../../../admin/ui/web/src/pages/index.ts', import.meta.url), 'utf8');
const listed = [...index.matchAll(/paths: \[([^\]]*)\]/g)].flatMap((list) => [...list[1].matchAll(/'([^']*)'/g)].map((one) => one[1])).filter((path) => path.includes('$'));
const tabs = {
  '/apis/$id/$tab': ['routing', 'auth', 'limits', 'schema', 'versions', 'operations', 'playground', 'traffic', 'uses', 'history', 'raw'],
  '/policies/$id/$tab': ['apis', 'fields', 'keys', 'replay', 'history', 'raw'],
};

const looks = [
  ['light', { colorScheme: 'light' }, { width: 1280, height: 800 }],
  ['dark', { colorScheme: 'dark' }, { width: 1280, height: 800 }],
  ['phone', { colorScheme: 'light' }, { width: 390, height: 844 }],
];

/** Looks at a page in light, dark and as wide as a phone. */
async function inAllLooks(page, name, { settled, shot }) {
  for (const [look, media, size] of looks) {
    await page.emulateMedia(media);
    await page.setViewportSize(size);
    await settled();
    await shot(`${name} ${look}`);
    await accessible(page);
    assert.equal(await page.locator('h1').count(), 1, 'a page has one h1');
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 1, `${look}: the page is ${wide} px wider than the window`);
  }
  await page.emulateMedia(looks[0][1]);
  await page.setViewportSize(looks[0][2]);
}

const ask = (path, key, query) =>
  fetch(product.gateway + path, { method: 'POST', headers: { Authorization: key, 'Content-Type': 'application/json' }, body: JSON.stringify({ query }) });

/** Makes what pages show, and returns the paths of the pages. */
async function made() {
  const { key, key_hash: hash } = await rest('POST', '/api/keys', { alias: 'countries-app', apply_policies: ['demo-reader'] });
  await eventually('the key is accepted', async () => assert.equal((await ask('/countries/', key, 'query One { country(code: "CH") { name } }')).status, 200));
  const refused = await ask('/countries/', key, '{ continents { countries { languages { name } } } }');
  const id = refused.headers.get('x-request-id');
  await eventually('the admin has the refusal', async () => rest('GET', `/api/refusals/${id}`));
  const { Message: developer } = await rest('POST', '/api/portal/developers', { email: `ada@${hash.slice(0, 8)}.example`, password: 'correct horse' });
  const { apis: [entry] } = await rest('GET', '/api/portal/catalogue');
  return {
    '/apis/$id': 'demo-countries', '/apis/$id/$tab': 'demo-countries', '/policies/$id': 'demo-reader', '/policies/$id/$tab': 'demo-reader', '/keys/$hash': hash, '/keys/$hash/edit': hash, '/keys/$hash/usage': hash, '/keys/$hash/refusals': hash,
    '/developers/$id': developer, '/catalogue/$id': entry.id, '/documents/$id': entry.documentation, '/why/$id': id, '/changes/$n': '1',
  };
}

story(
  'Pages of one object',
  async ({ page, step, signIn, open, ...looking }) => {
    const ids = await made();
    await signIn();
    for (const path of listed) {
      assert.ok(ids[path], `no object for ${path}`);
      for (const tab of tabs[path] ?? ['']) {
        const at = path.replace(/\$(id|hash|n)/, encodeURIComponent(ids[path])).replace('$tab', tab);
        await step(path.replace('$tab', tab), async () => {
          await open(at);
          await inAllLooks(page, path.replace('$tab', tab), looking);
        });
      }
    }
  },
  { timeout: 600_000 },
);

story('Sign-in', async ({ page, step, open, ...looking }) => {
  await step('sign in', async () => {
    await open('/sign-in');
    await inAllLooks(page, 'sign-in', looking);
  });
  await step('a forgotten password', async () => {
    await page.getByRole('button', { name: 'Forgot your password?' }).click();
    await page.getByRole('heading', { level: 1, name: 'A new password' }).waitFor();
    await inAllLooks(page, 'forgot', looking);
  });
});
