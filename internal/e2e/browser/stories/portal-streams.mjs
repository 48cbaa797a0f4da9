// product: --demo
import { execFileSync } from 'node:child_process';
import { assert, eventually, product, rest, story } from '../harness.mjs';

const fits = async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
};

/** The next message of the stream, by polling. */
const receive = () =>
  eventually('a message', async () => {
    const answer = await fetch(`${product.gateway}/events/feed`);
    assert.equal(answer.status, 200);
    return answer.json();
  });

for (const [look, context] of Object.entries({ desk: { colorScheme: 'light' }, phone: { colorScheme: 'dark', viewport: { width: 390, height: 844 } } })) {
  story(
    `A developer finds the routes of event streams and sends a message: ${look}`,
    async ({ page, step, open }) => {
      const email = `${look}-streams@example.com`;
      await rest('POST', '/api/portal/developers', { email, password: 'correct horse' });
      await step('the routes of the API', async () => {
        await open('/portal/apis/events');
        await page.getByRole('row', { name: /POST \/events\/messages Send a message/ }).waitFor();
        await page.getByRole('row', { name: /GET \/events\/feed .*server-sent events/ }).waitFor();
        await page.getByText('Receive server-sent events', { exact: true }).click();
        await page.getByText(`curl -N '${product.gateway}/events/feed'`).waitFor();
        await fits(page);
      });
      await step('the first example call works when it is pasted', async () => {
        await page.getByText('Send a message', { exact: true }).click();
        const command = await page.getByText(`curl '${product.gateway}/events/messages'`).innerText();
        execFileSync('sh', ['-c', `${command} --fail --silent --show-error`]);
        const received = await receive();
        assert.equal(received.text, 'hello');
      });
      await step('a route that gives messages', async () => {
        await page.getByRole('link', { name: '/events/feed' }).click();
        await page.getByText('Messages are not received here').waitFor();
        await fits(page);
      });
      await step('sign in', async () => {
        await open('/portal/login');
        await page.getByLabel('Email address').fill(email);
        await page.getByLabel('Password').fill('correct horse');
        await page.getByRole('main').getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('button', { name: 'Sign out' }).waitFor();
      });
      await step('a message is sent, and received', async () => {
        await open('/portal/apis/events');
        await page.getByRole('link', { name: '/events/messages' }).click();
        await page.getByLabel('Body').fill(`{"from":"${look}"}`);
        await page.getByRole('button', { name: 'Send the call' }).click();
        await page.getByRole('heading', { name: /^Answer.*200/ }).waitFor();
        const received = await receive();
        assert.equal(received.from, look);
        await fits(page);
      });
    },
    { context, timeout: 400_000 },
  );
}
