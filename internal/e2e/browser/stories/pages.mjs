// setting: gateway.tls.listen=127.0.0.1:0
// setting: gateway.acme.domains=api.example.com
// setting: gateway.acme.accept_terms=true
// setting: gateway.acme.directory=https://127.0.0.1:1/directory
// product: --demo
import { readFileSync } from 'node:fs';
import { accessible, assert, product, story } from '../harness.mjs';

// Every page that needs no id, as the registry of the UI lists them.
const index = readFileSync(new URL('../../../../admin/ui/web/src/pages/index.ts', import.meta.url), 'utf8');
const paths = [...index.matchAll(/paths: \[([^\]]*)\]/g)].flatMap((list) => [...list[1].matchAll(/'([^']*)'/g)].map((one) => one[1])).filter((path) => !path.includes('$') && !['/enter', '/sign-in'].includes(path));

for (const [look, context] of Object.entries({
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
})) {
  story(
    `Every page is accessible: ${look}`,
    async ({ page, step, signIn, open }) => {
      await signIn();
      for (const path of paths) {
        await step(path, async () => {
          await open(path);
          assert.equal(await page.locator('h1').count(), 1, 'a page has one h1');
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
        });
      }
    },
    { context, timeout: 400_000 },
  );
}

story('Certificates by ACME show why they were not obtained', async ({ page, step, signIn, open }) => {
  await signIn();
  await step('the attempt that failed', async () => {
    await open('/certificates');
    await page.getByRole('row', { name: /api\.example\.com none .*failed .*connection refused/ }).waitFor();
  });
  await step('another attempt', async () => {
    await page.getByRole('button', { name: 'Try now' }).click();
    await page.getByText('Gateways try again for api.example.com within a minute').waitFor();
  });
});

story('The theme is chosen, kept and does not flash', async ({ page, step, signIn, open }) => {
  await signIn();
  await step('dark is chosen', async () => {
    await open('/');
    await page.getByRole('button', { name: /Admin/ }).click();
    await page.getByLabel('Appearance').selectOption('dark');
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), 'dark');
  });
  await step('the server writes it into the HTML', async () => {
    const answer = await page.goto(product.url + '/about');
    assert.match(await answer.text(), /data-theme="dark"/);
  });
});

story('The palette and keys go to pages', async ({ page, step, signIn, open }) => {
  await signIn();
  await open('/');
  await step('Ctrl K, a word, Enter', async () => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill('about');
    await page.getByRole('option', { name: /About/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'About' }).waitFor();
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
    assert.match(await page.title(), /About/);
  });
  await step('g h goes home', async () => {
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
  });
  await step('? shows the keys, and Esc leaves', async () => {
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await accessible(page);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
});
