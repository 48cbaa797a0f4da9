// setting: gateway.websockets=true
import { createServer } from 'node:http';
import { after } from 'node:test';
import { assert, eventually, product, rest, story } from '../harness.mjs';

/** A GraphQL server whose subscriptions get what a story says. */
const open = new Set();
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    if (!request.headers.accept?.includes('event-stream')) {
      response.setHeader('Content-Type', 'application/json');
      return response.end('{"data":{"ticks":1}}');
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(':\n\n');
    open.add(response);
    response.on('close', () => open.delete(response));
  });
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
after(() => (server.closeAllConnections(), server.close()));

const say = (from, to) => {
  let text = '';
  for (let n = from; n <= to; n++) text += `event: next\ndata: {"data":{"tick":${n}}}\n\n`;
  for (const one of open) one.write(text);
};
const complete = () => [...open].forEach((one) => one.end('event: complete\ndata:\n\n'));
const subscribed = () => eventually('a subscription at the upstream', () => assert.equal(open.size, 1));
const left = () => eventually('the subscription at the upstream to end', () => assert.equal(open.size, 0));

const sdl = 'type Query { ticks: Int }\ntype Subscription { tick: Int secret: Int }\n';

async function api(id, more) {
  await rest('POST', '/api/apis', {
    name: `Clock ${id}`, api_id: id, active: true, proxy: { listen_path: `/${id}/`, target_url: `http://127.0.0.1:${server.address().port}/`, strip_listen_path: true },
    graphql: { enabled: true, execution_mode: 'proxyOnly', schema: sdl, playground: { enabled: true }, proxy: { subscription_type: 'sse' } }, ...more,
  });
}

/** The parts of a playground on a page. */
function playground(page) {
  const write = async (text) => {
    await page.getByRole('textbox', { name: 'Query' }).click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(text);
  };
  return {
    write,
    start: async (text) => {
      await write(text);
      await page.keyboard.press('Control+Enter');
      await page.getByText('Live', { exact: true }).waitFor();
      await subscribed();
    },
    stop: async () => {
      await page.getByRole('textbox', { name: 'Query' }).focus();
      await page.keyboard.press('Control+Enter');
      await page.getByText('Stopped.').waitFor();
      await left();
    },
    figures: (text) => page.getByRole('region', { name: 'Results' }).getByText(text).waitFor(),
    rows: page.getByRole('listbox').getByRole('option'),
    newest: (text) => page.getByRole('listbox').getByRole('option', { selected: true }).filter({ hasText: text }).waitFor(),
    button: (name) => page.getByRole('button', { name, exact: true }),
    answer: (text) => page.getByRole('textbox', { name: 'Answer' }).getByText(text).waitFor(),
  };
}

for (const transport of ['WebSocket', 'WebSocket, older protocol', 'SSE']) {
  story(`The page of an API subscribes over ${transport}`, async ({ page, step, allow }) => {
    allow(/status of 400 \(Bad Request\) \(\S*\/open/);
    const id = `open-${transport.replace(/\W/g, '').toLowerCase()}`;
    await api(id, { use_keyless: true });
    await eventually('the page', async () => assert.equal((await fetch(`${product.gateway}/${id}/playground`)).status, 200));
    const p = playground(page);
    await step('the transport is chosen', async () => {
      await page.goto(`${product.gateway}/${id}/playground`);
      assert.equal(await page.getByLabel('Transport').isVisible(), false, 'a query has no choice');
      await p.write('subscription Ticks { tick }');
      await page.getByText('depth 2').waitFor();
      await page.getByLabel('Transport').selectOption(transport);
    });
    await step('results come as a list', async () => {
      await p.start('subscription Ticks { tick }');
      await page.getByText(`over ${transport}`, { exact: true }).waitFor();
      say(1, 3);
      await p.figures(/^3 results · \d+\.\d\/s$/);
      await p.newest('{"tick":3}');
      await p.answer('3');
    });
    await step('an older result is looked at, by keyboard', async () => {
      await page.getByRole('listbox', { name: 'Results, newest first' }).focus();
      await page.keyboard.press('End');
      await p.newest('{"tick":1}');
      say(4, 4);
      await p.figures(/^4 results/);
      await p.newest('{"tick":1}');
      await page.keyboard.press('Home');
      await p.newest('{"tick":4}');
    });
    await step('on a phone, in the dark', async () => {
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.setViewportSize({ width: 390, height: 844 });
      await p.newest('{"tick":4}');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), 'the page fits');
    });
    await step('a pause counts on', async () => {
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 1280, height: 800 });
      await p.button('Pause').click();
      say(5, 9);
      await p.figures(/^9 results · .* · paused, 5 not shown$/);
      assert.equal(await p.rows.count(), 4);
    });
    await step('after it all are shown', async () => {
      await p.button('Resume').click();
      await p.newest('{"tick":9}');
      assert.equal(await p.rows.count(), 9);
    });
    await step('the list is cleared', async () => {
      await p.button('Clear').click();
      await p.figures(/^0 results/);
      assert.equal(await p.rows.count(), 0);
    });
    await step('it keeps 500', async () => {
      say(1, 503);
      await p.figures(/^503 results/);
      await p.newest('{"tick":503}');
      await page.getByText('The oldest 3 are not kept.').waitFor();
      assert.equal(await p.rows.count(), 500);
    });
    await step('it completes', async () => {
      complete();
      await page.getByText('Completed.').waitFor();
      await p.button('Run').waitFor();
    });
    await step('it is stopped by keyboard', async () => {
      await p.start('subscription Ticks { tick }');
      say(1, 1);
      await p.figures(/^1 result\b/);
      await p.stop();
    });
    await step('a refusal says why', async () => {
      await p.write('subscription { tock }');
      await p.button('Run').click();
      await page.getByText(/tock/).last().waitFor();
      await page.getByText(transport === 'SSE' ? '400' : 'Refused', { exact: true }).waitFor();
      assert.equal(await page.getByRole('region', { name: 'Results' }).isVisible(), false);
    });
    await step('the choice is remembered', async () => {
      await page.reload();
      await p.write('subscription Again { tick }');
      assert.equal(await page.getByLabel('Transport').evaluate((one) => one.selectedOptions[0].textContent), transport);
    });
    await step('a query is run as before', async () => {
      await p.write('query { ticks }');
      await p.button('Run').click();
      await page.getByText('200', { exact: true }).waitFor();
      await p.answer('1');
    });
  });
}

story('A connection that is closed says by which code', async ({ page, step }) => {
  await api('shut', { use_keyless: true });
  await eventually('the page', async () => assert.equal((await fetch(`${product.gateway}/shut/playground`)).status, 200));
  const p = playground(page);
  await step('the API is switched off', async () => {
    await page.goto(`${product.gateway}/shut/playground`);
    await p.start('subscription { tick }');
    await rest('PUT', '/api/apis/shut', { ...(await rest('GET', '/api/apis/shut')), active: false });
    await page.getByText(/^Closed with code 4\d\d\d$/).waitFor();
    await left();
  });
});

const policy = (fields) => ({
  id: 'gold', name: 'Gold', state: 'active', rate: 1000, per: 60, quota_max: 1000, quota_renewal_rate: 3600, max_query_depth: 3,
  access_rights: { keyed: { api_id: 'keyed', versions: ['Default'], restricted_types: [{ name: 'Subscription', fields }] } },
});

/** An API that wants keys, and a policy that hides a field. */
async function keyed() {
  if ((await rest('GET', '/api/portal/policies?q=gold')).Data?.some((one) => one.id === 'gold')) return;
  await api('keyed', { use_keyless: false, auth: { auth_header_name: 'Authorization' } });
  await rest('POST', '/api/portal/policies', policy(['secret']));
}

story('An operator subscribes as a policy', async ({ page, step, signIn, open: visit }) => {
  await keyed();
  await signIn();
  const p = playground(page);
  await step('as a policy', async () => {
    await visit('/apis/keyed/playground?as=policy&of=gold');
    await page.getByRole('textbox', { name: 'Query' }).waitFor();
    await p.start('subscription Ticks { tick }');
    assert.equal(await page.getByLabel('Transport').isVisible(), false, 'the admin has one way');
    say(1, 3);
    await p.figures(/^3 results/);
    await p.newest('{"tick":3}');
  });
  await step('on a phone, in the dark', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 390, height: 844 });
    await p.newest('{"tick":3}');
  });
  await step('paused and cleared', async () => {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1280, height: 800 });
    await p.button('Pause').click();
    say(4, 6);
    await p.figures(/paused, 3 not shown$/);
    await p.button('Clear').click();
    await p.button('Resume').click();
    say(7, 7);
    await p.figures(/^1 result\b/);
    await p.newest('{"tick":7}');
  });
  await step('stopped', () => p.stop());
  await step('a refusal has its steps', async () => {
    await p.write('subscription { secret }');
    await p.button('Run').click();
    await page.getByText('field_restricted').first().waitFor();
    await page.getByText(/set by policy gold/).waitFor();
    await page.locator('.cm-lintRange-error').first().waitFor(); // the editor marks what the key may not use
    await page.getByRole('main').getByRole('link', { name: 'Why' }).waitFor();
  });
  await step('it ends once the policy forbids it', async () => {
    await p.start('subscription Ticks { tick }');
    await rest('PUT', '/api/portal/policies/gold', policy(['secret', 'tick']));
    await page.getByText('The subscription is not allowed any more: field_restricted.').waitFor();
    await left();
    await rest('PUT', '/api/portal/policies/gold', policy(['secret']));
  });
  await step('it ends with the page', async () => {
    await eventually('the policy', async () => {
      await p.write('subscription Ticks { tick }');
      await page.keyboard.press('Control+Enter');
      await page.getByText('Live', { exact: true }).waitFor({ timeout: 5000 });
    });
    await subscribed();
    await visit('/apis/keyed/schema');
    await left();
  });
});

story('A developer subscribes with a key of their own', async ({ page, step }) => {
  await keyed();
  await rest('PUT', '/api/portal/configuration', { require_key_approval: false });
  const { Message: documentation } = await rest('POST', '/api/portal/documentation', { api_id: 'keyed', name: 'Clock', doc_type: 'graphql', documentation: Buffer.from(sdl).toString('base64') });
  await rest('POST', '/api/portal/catalogue/entries', { id: 'clock', name: 'Clock', show: true, api_id: 'keyed', policy_id: 'gold', documentation, short_description: 'Ticks.' });
  const visit = async (path) => {
    await page.goto(product.url + path);
    await page.locator('h1').first().waitFor();
  };
  const p = playground(page);
  await step('sign up', async () => {
    await visit('/portal/');
    await page.getByRole('link', { name: 'Sign up' }).click();
    await page.getByLabel('Email address').fill('carol@example.com');
    await page.getByLabel('Password').fill('correct horse');
    await page.getByRole('button', { name: 'Sign up' }).click();
    const confirm = await eventually('the letter', async () => {
      const { Data } = await rest('GET', '/api/portal/mailbox?page_size=100&q=carol%40example.com');
      for (const one of Data) {
        const { text } = await rest('GET', `/api/portal/mailbox/${one.id}`);
        const link = /\/portal\/verify\?token=\w+/.exec(text);
        if (link) return link[0];
      }
      throw new Error('no letter yet');
    });
    await visit(confirm);
    await page.getByLabel('Password').fill('correct horse');
    await page.getByRole('main').getByRole('button').click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  });
  await step('a key', async () => {
    await visit('/portal/request/gold');
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByRole('heading', { name: 'Keep this now' }).waitFor();
  });
  await step('results with the key', async () => {
    await visit('/portal/apis/clock/play');
    await p.start('subscription Ticks { tick }');
    await page.getByText('counted', { exact: true }).waitFor();
    say(1, 2);
    await p.figures(/^2 results/);
    await p.newest('{"tick":2}');
  });
  await step('paused, cleared and stopped', async () => {
    await p.button('Pause').click();
    say(3, 3);
    await p.figures(/paused, 1 not shown$/);
    await p.button('Clear').click();
    await p.figures(/^0 results/);
    await p.stop();
  });
  await step('a refusal by the plan', async () => {
    await p.write('subscription { secret }');
    await p.button('Run').click();
    await page.getByText('field_restricted').first().waitFor();
    await page.getByText(/set by policy gold/).waitFor();
    await page.locator('.cm-lintRange-error').first().waitFor(); // the editor marks what the key may not use
  });
});
