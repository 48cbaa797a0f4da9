// setting: gateway.websockets=true
import { randomBytes } from 'node:crypto';
import { createServer, request } from 'node:http';
import { after } from 'node:test';
import { assert, eventually, newUser, product, rest, story } from '../harness.mjs';

const schema = 'type Query { a: Int } type Subscription { prices: Int }';

/** An upstream whose subscriptions send one event and go on. */
async function serveEvents() {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('event: next\ndata: {"data":{"prices":1}}\n\n');
  });
  const { hostname, port } = new URL(`http://${product.front}`);
  await new Promise((ready) => server.listen(Number(port), hostname, ready));
  return () => (server.closeAllConnections(), server.close());
}

/** Makes a GraphQL API that wants keys, and a key for it. */
async function graphOf(id) {
  await rest('POST', '/api/apis', {
    name: id,
    api_id: id,
    proxy: { listen_path: `/${id}/`, target_url: `http://${product.front}` },
    auth: { auth_header_name: 'Authorization' },
    active: true,
    graphql: { enabled: true, execution_mode: 'proxyOnly', schema, proxy: { subscription_type: 'sse', sse_use_post: true } },
  });
  await rest('POST', '/api/portal/policies', { id, name: `Plan ${id}`, access_rights: { [id]: { api_id: id, api_name: id } } });
  return rest('POST', '/api/keys', { alias: `key of ${id}`, apply_policies: [id] });
}

const dialled = [];

after(() => dialled.forEach((one) => one.drop())); // of stories that failed

/** A WebSocket as far as these stories need one: messages of less than 64 KiB, in one frame each. */
function dial(path, key) {
  const { hostname, port } = new URL(product.gateway);
  const asked = request({
    hostname,
    port,
    path,
    headers: { Authorization: key, Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': randomBytes(16).toString('base64'), 'Sec-WebSocket-Protocol': 'graphql-transport-ws' },
  });
  return new Promise((done, fail) => {
    asked.on('error', fail);
    asked.on('response', (answer) => (answer.resume(), fail(new Error(`the handshake was answered with ${answer.statusCode}`))));
    asked.on('upgrade', (_, socket, head) => done(framed(socket, head)));
    asked.end();
  });
}

function framed(socket, head) {
  const send = (opcode, payload) => {
    const size = payload.length < 126 ? Buffer.from([0x80 | payload.length]) : Buffer.from([0x80 | 126, payload.length >> 8, payload.length & 255]);
    socket.write(Buffer.concat([Buffer.from([0x80 | opcode]), size, Buffer.alloc(4), payload])); // a mask of zeros changes nothing
  };
  let close;
  const self = { heard: () => {}, say: (message) => send(1, Buffer.from(JSON.stringify(message))), close: () => send(8, Buffer.from([0x03, 0xe8])), drop: () => socket.destroy(), ended: new Promise((done) => (close = done)) };
  let received = head;
  const read = () => {
    for (;;) {
      if (received.length < 2) return;
      const long = (received[1] & 127) === 126;
      const start = long ? 4 : 2;
      if (received.length < start) return;
      const end = start + (long ? received.readUInt16BE(2) : received[1] & 127);
      if (received.length < end) return;
      const [opcode, payload] = [received[0] & 15, received.subarray(start, end)];
      received = received.subarray(end);
      if (opcode === 1) self.heard(JSON.parse(payload));
      if (opcode === 9) send(10, payload);
      if (opcode === 8) {
        close({ code: payload.readUInt16BE(0), reason: payload.subarray(2).toString() });
        send(8, payload.subarray(0, 2));
        socket.end();
      }
    }
  };
  socket.on('data', (data) => ((received = Buffer.concat([received, data])), read()));
  socket.on('error', () => {});
  socket.on('close', () => close({ code: 1006, reason: '' }));
  return self;
}

/** Opens a connection, on which a subscription has sent its first event. ended is how it closes. */
async function subscribed(id, key, name) {
  const socket = await eventually('a connection', () => dial(`/${id}/`, key), 30_000);
  dialled.push(socket);
  await new Promise((done, fail) => {
    socket.heard = ({ type, ...rest }) => {
      if (type === 'connection_ack') socket.say({ type: 'subscribe', id: '1', payload: { query: `subscription ${name} { prices }` } });
      if (type === 'error') fail(new Error(JSON.stringify(rest)));
      if (type === 'next') done();
    };
    socket.say({ type: 'connection_init' });
  });
  return socket;
}

story('Live connections are found, looked into and ended', async ({ page, step, signIn, open, allow }) => {
  allow(/status of 404 \(Not Found\) \(\S*\/api\/connections\/[0-9a-f]{16}\)/); // one that ends while its operations are read
  const stop = await serveEvents();
  try {
    await signIn(await newUser('editor'));
    await step('there is none at first', async () => {
      await open('/connections');
      await page.getByRole('heading', { level: 2, name: 'No GraphQL connection is open' }).waitFor();
    });
    const [shop, news] = [await graphOf('shop'), await graphOf('news')];
    const kept = await subscribed('news', news.key, 'headlines');
    const one = await subscribed('shop', shop.key, 'prices');
    const table = page.getByRole('table', { name: 'Open GraphQL connections' });
    await step('they appear by themselves', async () => {
      await table.getByRole('link', { name: 'key of shop' }).waitFor();
      await table.getByRole('link', { name: 'key of news' }).waitFor();
    });
    await step('a filter is in the address', async () => {
      await page.getByRole('searchbox', { name: 'API id' }).fill('shop');
      await page.getByRole('button', { name: 'Apply' }).click();
      await page.waitForURL('**/connections?api=shop');
      await table.getByRole('link', { name: 'key of news' }).waitFor({ state: 'detached' });
      await table.getByRole('link', { name: 'key of shop' }).waitFor();
    });
    await step('its operations are shown', async () => {
      await table.getByRole('button', { name: /^1 operation of shop/ }).click();
      const row = page.getByRole('table', { name: 'Operations' }).getByRole('row', { name: /prices.*subscription/ });
      await row.getByRole('cell', { name: '1', exact: true }).first().waitFor();
      await page.waitForURL('**/connections?api=shop&open=*');
    });
    await step('in the dark', async () => {
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.getByRole('table', { name: 'Operations' }).waitFor();
    });
    await page.emulateMedia({ colorScheme: 'light' });
    await step('on a phone', async () => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.getByRole('table', { name: 'Operations' }).waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
    });
    await page.setViewportSize({ width: 1280, height: 800 });
    await step('ending asks for code and reason', async () => {
      await table.getByRole('button', { name: /^End shop/ }).click();
      const dialog = page.getByRole('dialog', { name: 'End this connection?' });
      await dialog.getByText('1 active operation ends').waitFor();
      await dialog.getByLabel('Close code').selectOption('4403');
      await dialog.getByLabel('Reason').fill('Too loud');
    });
    await step('the client gets them', async () => {
      await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click();
      await page.getByText('The connection was ended.').waitFor();
      assert.deepEqual(await one.ended, { code: 4403, reason: 'Too loud' });
      await page.getByText('No open connection matches.').waitFor();
    });
    await step('the filter is cleared, and the other one is there', async () => {
      await page.getByRole('button', { name: 'Clear the filters' }).first().click();
      await table.getByRole('link', { name: 'key of news' }).waitFor();
      assert.equal(await page.getByRole('searchbox', { name: 'API id' }).inputValue(), '');
    });
    const { audit } = await rest('GET', '/api/audit?object_kind=connection');
    assert.equal(audit[0].action, 'ended');
    kept.close();
    await kept.ended;
  } finally {
    stop();
  }
});

story('Viewers see connections and end none', async ({ page, step, signIn, open }) => {
  const stop = await serveEvents();
  try {
    const { key } = await graphOf('seen');
    const one = await subscribed('seen', key, 'prices');
    await signIn(await newUser('viewer'));
    await step('the list has no verbs', async () => {
      await open('/connections?api=seen');
      await page.getByRole('button', { name: /^1 operation of seen/ }).waitFor();
      assert.equal(await page.getByRole('button', { name: /^End/ }).count(), 0);
    });
    one.close();
    await one.ended;
  } finally {
    stop();
  }
});

story('A list that cannot be read says so', async ({ page, step, signIn, open, allow }) => {
  await signIn();
  allow(/status of 500/);
  await page.route('**/api/connections?*', (route) => route.fulfill({ status: 500, contentType: 'application/json', body: '{"Status":"Error","Message":"It broke","Meta":null}' }));
  await step('with the words of the server', async () => {
    await open('/connections');
    await page.getByText('It broke').waitFor();
  });
});
