// Runs a query and a subscription with a browser's EventSource against each API, and prints
// a line of JSON for each: what the page got.
import { chromium } from 'playwright-core';

const { LIVE_GATEWAY: gateway, LIVE_KEY: key, LIVE_CHROMIUM: executablePath } = process.env;
const apis = process.env.LIVE_APIS.split(' ');

const operations = {
  query: { query: 'query Q($name: String) { hello(name: $name) }', variables: JSON.stringify({ name: 'you' }) },
  subscription: { query: 'subscription { count(to: 3) }' },
};

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking'] });
try {
  const page = await browser.newPage();
  await page.goto(`http://${gateway}/`); // any page of the gateway's origin
  for (const api of apis) {
    for (const [operation, parameters] of Object.entries(operations)) {
      const url = `/${api}/?${new URLSearchParams({ ...parameters, key })}`;
      const got = await page.evaluate(
        (url) =>
          new Promise((resolve) => {
            const got = [];
            const source = new EventSource(url);
            const end = (how) => {
              source.close(); // it would connect again
              resolve([...got, how]);
            };
            source.addEventListener('next', (event) => got.push(JSON.parse(event.data).data));
            source.addEventListener('complete', () => end('complete'));
            source.onerror = () => end('error');
          }),
        url,
      );
      console.log(JSON.stringify({ client: 'EventSource', api, operation, got: JSON.stringify(got) }));
    }
  }
} finally {
  await browser.close();
}
