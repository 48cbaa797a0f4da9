// Event streams: made from a template, watched, tried and edited.
import { assert, newUser, rest, story } from '../harness.mjs';

const select = 'Control+a';

/** What an editor holds. */
const held = (content) => content.evaluate((one) => one.cmTile?.view?.state.doc.toString() ?? one.innerText);

async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 1, `the page is ${wide} px wider than the window`);
}

story('An API of event streams is made, tried and changed', async ({ page, step, signIn, open, allow }) => {
  allow(/status of 404 \(Not Found\) \(\S*\/api\/apis\/streams\/\S+\/status\)/); // before it is published
  await signIn(await newUser('editor'));
  await step('the list says what streams are for', async () => {
    await open('/streams');
    await page.getByRole('heading', { level: 2, name: 'No gateway runs a stream' }).waitFor();
  });
  await step('a template begins a stream', async () => {
    await page.getByRole('link', { name: 'New API of event streams' }).click();
    await page.getByRole('combobox', { name: 'Template' }).selectOption({ label: 'HTTP to event stream, inside the gateway' });
    await page.getByLabel('Name of the stream').fill('orders');
    await page.getByRole('button', { name: 'Add a stream' }).click();
    await page.getByRole('heading', { level: 3, name: 'orders' }).waitFor();
    assert.equal(await page.getByLabel('Listen path').inputValue(), '/orders/');
    assert.equal(await page.getByLabel('Upstream').count(), 0);
    await page.getByLabel('Callers authenticate by').selectOption('keyless');
  });
  await step('the review sheet shows it', async () => {
    await page.keyboard.press('Control+s');
    await page.getByRole('dialog', { name: /Review/ }).getByText('x-svc-streaming').first().waitFor();
  });
  await step('it is published', async () => {
    await page.getByRole('dialog').getByRole('button', { name: 'Publish' }).click();
    await page.getByRole('navigation', { name: 'Parts of orders' }).getByRole('link', { name: 'Streams' }).click();
    await page.getByRole('group', { name: 'Graph of orders' }).waitFor();
  });
  const graph = page.getByRole('group', { name: 'Graph of orders' });
  await step('the graph says that it waits', async () => {
    await graph.getByRole('button', { name: /http_server waiting for demand/ }).first().waitFor();
  });
  await step('its processors are tried step by step', async () => {
    await page.getByRole('button', { name: 'Try orders' }).click();
    await page.getByLabel('Message', { exact: true }).fill('{"n": 7}');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    const steps = page.getByRole('list', { name: 'Steps' });
    await steps.getByText('"received_at"').waitFor();
    await steps.getByText('passed').waitFor();
  });
  await step('what is sent is what comes out', async () => {
    await page.getByRole('button', { name: 'Watch', exact: true }).click();
    await page.getByText('Watching', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText(/Answered with 200/).waitFor();
    await page.getByRole('list', { name: 'Events' }).getByText('"n":7').waitFor();
  });
  await step('the counts follow', async () => {
    await graph.getByRole('button', { name: /http_server.*1 message/ }).first().waitFor();
    await graph.getByRole('button', { name: /mapping.*1 message/ }).waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('button', { name: 'Watch', exact: true }).waitFor();
  });
  await step('a node has its counts and its script', async () => {
    await graph.getByRole('button', { name: /^mapping/ }).click();
    await page.getByRole('region', { name: /Selected node/ }).getByText('Mean time').waitFor();
    await page.getByRole('group', { name: /^Script/ }).waitFor();
  });
  await step('a fault in a script is placed', async () => {
    const script = page.getByRole('group', { name: /^Script/ }).locator('.cm-content');
    await script.click();
    await page.keyboard.press(select);
    await page.keyboard.insertText('root = this\nroot.x = (');
    await page.getByRole('region', { name: /Selected node/ }).getByText(/^2:/).waitFor();
  });
  await step('a trial runs the draft', async () => {
    const script = page.getByRole('group', { name: /^Script/ }).locator('.cm-content');
    await script.click();
    await page.keyboard.press(select);
    await page.keyboard.insertText('root = this\nroot.x = "draft"');
    await page.getByRole('region', { name: /Selected node/ }).getByText(/^2:/).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('list', { name: 'Steps' }).getByText('"x":"draft"').waitFor();
  });
  await step('the text says where a member is unknown', async () => {
    await page.getByRole('button', { name: 'Edit orders' }).click();
    const text = page.getByRole('group', { name: 'Stream orders as JSON' }).locator('.cm-content');
    const was = await held(text);
    await text.click();
    await page.keyboard.press(select);
    await page.keyboard.insertText(was.replace('"allowed_verbs"', '"allowed_verb"'));
    await page.getByText(/^\d+:\d+ input\.http_server\.allowed_verb: unknown field/).waitFor();
    await page.keyboard.press(select);
    await page.keyboard.insertText('{');
    await page.getByText(/The draft keeps the last text that is JSON/).waitFor();
    await page.keyboard.press(select);
    await page.keyboard.insertText(was);
    await page.getByText(/^\d+:\d+ input.*unknown field/).waitFor({ state: 'detached' });
  });
  await step('a second stream is added, with two outputs', async () => {
    await page.getByRole('combobox', { name: 'Template' }).selectOption({ label: 'HTTP to several outputs' });
    await page.getByLabel('Name of the stream').fill('audit.log');
    await page.getByRole('button', { name: 'Add a stream' }).click();
    const second = page.getByRole('group', { name: 'Graph of audit.log' });
    await second.getByText('each takes every message').waitFor();
    assert.equal(await second.getByRole('group', { name: 'Outputs' }).getByRole('button').count(), 2);
  });
  await step('the draft is published', async () => {
    await page.keyboard.press('Control+s');
    const dialog = page.getByRole('dialog', { name: /Review/ });
    await dialog.getByRole('button', { name: 'Publish' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('group', { name: 'Graph of audit.log' }).getByRole('button', { name: /msgbroker (running|waiting for demand|starting)/ }).waitFor();
  });
  await step('as a table', async () => {
    await page.getByText('As a table').first().click();
    await page.getByRole('table', { name: 'Connectors and processors of audit.log' }).getByRole('row', { name: /msgbroker.*output/ }).waitFor();
  });
  await step('in the dark', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await graph.waitFor();
  });
  await step('on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await graph.waitFor();
    await fits(page);
  });
  await step('the list, on a phone and in the dark', async () => {
    await open('/streams');
    await page.getByRole('table', { name: 'Event streams' }).getByRole('link', { name: 'audit.log' }).waitFor();
    await fits(page);
  });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
  await step('the list has both streams', async () => {
    const table = page.getByRole('table', { name: 'Event streams' });
    await table.getByRole('link', { name: 'audit.log' }).waitFor();
    await table.getByRole('row', { name: /^orders .*0 \/ 0/ }).waitFor(); // it was changed: it counts from its new start
  });
  await step('a filter that matches nothing says so', async () => {
    await page.getByLabel('State').selectOption('draining');
    await page.getByRole('heading', { level: 2, name: 'No stream matches' }).waitFor();
  });
});

story('Viewers see streams and change none', async ({ page, step, signIn, open }) => {
  await rest('POST', '/api/apis', {
    api_id: 'seen',
    name: 'seen',
    active: true,
    use_keyless: true,
    proxy: { listen_path: '/seen/', target_url: '' },
    'x-svc-streaming': { streams: { feed: { input: { http_server: { path: '/in' } }, output: { http_server: { path: '/out' } } } } },
  });
  await signIn(await newUser('viewer'));
  await step('the tab has no verbs that change', async () => {
    await open('/apis/seen/streams');
    await page.getByRole('group', { name: 'Graph of feed' }).getByRole('button', { name: /waiting for demand/ }).first().waitFor();
    assert.equal(await page.getByRole('button', { name: /^(Remove|Add)/ }).count(), 0);
  });
  await step('the text is read only', async () => {
    await page.getByRole('button', { name: 'Edit feed' }).click();
    await page.getByRole('group', { name: 'Stream feed as JSON' }).locator('.cm-content[contenteditable=false]').waitFor();
  });
});

story('What cannot be read says so', async ({ page, step, signIn, open, allow }) => {
  await signIn();
  allow(/status of 500/);
  await page.route('**/api/streams?*', (route) => route.fulfill({ status: 500, contentType: 'application/json', body: '{"Status":"Error","Message":"It broke","Meta":null}' }));
  await step('with the words of the server', async () => {
    await open('/streams');
    await page.getByText('It broke').waitFor();
  });
});
