// product: --demo
import { assert, product, rest, story } from '../harness.mjs';

// The pages of the developer portal, for visitors and for a developer with a key.
const visitors = ['', 'apis/hello', 'apis/hello/docs', 'signup', 'login', 'forgot', 'verify?token=x', 'reset?token=x'];
const developers = ['', 'apis/countries', 'apis/countries/docs', 'apis/countries/docs/query.country', 'apis/countries/play', 'apis/hello/docs', 'requests', 'keys', 'clients', 'webhooks', 'account'];

const looks = Object.entries({
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
});

const fits = async (page) => {
  assert.equal(await page.locator('h1').count(), 1, 'a page has one h1');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
};

for (const [look, context] of looks) {
  story(
    `Every page of the portal is accessible: ${look}`,
    async ({ page, step, open }) => {
      const email = `${look}@example.com`;
      const { Message: id } = await rest('POST', '/api/portal/developers', { email, password: 'correct horse' });
      const { Data: offers } = await rest('GET', '/api/portal/public/catalogue');
      const plans = ['hello', 'countries'].map((offer) => offers.find((one) => one.id === offer).policy_id);
      const { key_id: key } = await rest('POST', `/api/portal/developers/${id}/keys`, { apply_policies: plans });
      const visit = (path) => step(`/portal/${path}`, async () => {
        await open(`/portal/${path}`);
        assert.equal(page.url(), `${product.url}/portal/${path}`);
        await fits(page);
      });
      for (const path of visitors) await visit(path);
      await step('sign in', async () => {
        await open('/portal/login');
        await page.getByLabel('Email address').fill(email);
        await page.getByLabel('Password').fill('correct horse');
        await page.getByRole('main').getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('button', { name: 'Sign out' }).waitFor();
      });
      for (const path of [...developers, `request/${plans[0]}`, `keys/${key}`]) await visit(path);
      await step('the answer of an operation', async () => {
        await open('/portal/apis/hello/docs');
        await page.getByRole('article').getByRole('link', { name: /GET/ }).first().click();
        await page.getByRole('button', { name: 'Send the call' }).click();
        await page.getByRole('heading', { name: /^Answer.*\d/ }).waitFor();
        await fits(page);
      });
    },
    { context, timeout: 400_000 },
  );
}
