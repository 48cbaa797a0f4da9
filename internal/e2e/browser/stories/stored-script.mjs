// product: --demo
// setting: usage.flush=200ms
import { readFileSync } from 'node:fs';
import { assert, product, rest, story } from '../harness.mjs';

// Every text field that the REST takes gets a text which runs a script where it is not escaped.
// The fields are those of the description of the REST, so that new ones are tried too.

/** Texts for one field; the next is tried where the server refuses the one before. */
const texts = (name) => {
  const run = `ran('${name.replace(/[^\w/]/g, '_')}')`;
  return [`"><img src=x onerror=${run}><script>${run}</script>'\`\${${run}}{{${run}}}`, `javascript:${run}//`, `https://s.example/"><script>${run}</script>`, `<img src=x onerror=ran(1)>`];
};

const { paths, components } = await (await fetch(product.url + '/api/openapi.json', { headers: { Authorization: product.key } })).json();
const bodyOf = (method, path) => paths[path]?.[method.toLowerCase()]?.requestBody?.content?.['application/json']?.schema;

/** Names of entries in maps that take no name of one's own. */
const names = { access_rights: 'scriptql', auth_configs: 'authToken', versions: 'Default', events: 'AuthFailure' };

/** The paths of the texts in a schema. Lists and maps have one entry. */
function textsOf(schema, at = [], seen = []) {
  if (!schema || at.length > 9) return [];
  if (schema.$ref) {
    if (seen.includes(schema.$ref)) return [];
    return textsOf(components.schemas[schema.$ref.split('/').at(-1)], at, [...seen, schema.$ref]);
  }
  const found = [].concat(schema.type).includes('string') && !schema.enum ? [at] : [];
  for (const [name, one] of Object.entries(schema.properties ?? {})) found.push(...textsOf(one, [...at, name], seen));
  if (schema.items) found.push(...textsOf(schema.items, [...at, 0], seen));
  const { additionalProperties: more } = schema;
  const any = more && !schema.properties && !more.type && !more.$ref; // a map of what one likes
  if (any) found.push([...at, names[at.at(-1)] ?? 'x-script']);
  else if (typeof more === 'object') found.push(...textsOf(more, [...at, names[at.at(-1)] ?? 'x-script'], seen));
  for (const one of [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]) found.push(...textsOf(one, at, seen));
  return found;
}

/** A copy of a value with others put into it at their paths. */
function bodyWith(base, leaves) {
  const body = structuredClone(base);
  for (const { at, text } of leaves) {
    let into = body;
    // A list may be one of texts or of objects: what came first stays.
    for (const [n, part] of at.slice(0, -1).entries()) into = typeof into === 'object' ? (into[part] ??= typeof at[n + 1] === 'number' ? [] : {}) : undefined;
    if (typeof into === 'object') into[at.at(-1)] = text;
  }
  return body;
}

const plain = (path) => path.replace(/\["?|"?\]|\./g, '/').replace(/\/+/g, '/').replace(/^\/|\/$/g, '');
const within = (name, path) => name === path || name.startsWith(path + '/');

/** What of some leaves the server takes; the last of its calls was one that it took. */
async function taken(write, base, leaves) {
  for (let left = leaves; left.length > 0; ) {
    const refused = await write(bodyWith(base, left));
    if (!refused) return left;
    const next = left.filter(({ at }) => !refused.some((path) => within(plain(path), plain(at.join('/')))));
    if (next.length < left.length) {
      left = next;
      continue;
    }
    if (left.length === 1) return [];
    const halves = [left.slice(0, left.length / 2), left.slice(left.length / 2)];
    const first = await taken(write, base, halves[0]);
    const second = await taken(write, bodyWith(base, first), halves[1]);
    return [...first, ...second];
  }
  return [];
}

const total = { tried: 0, kept: 0 };

/** Writes texts into every field of a body that the server lets have them. */
async function fill(what, method, path, base, { fixed = [], to = path } = {}) {
  const [name, ...more] = path.split('?');
  const schema = bodyOf(method, name);
  assert.ok(schema, `the description has no ${method} ${path}`);
  filled.add(schema.$ref);
  const target = (more.length ? `${to}?${more[0]}` : to);
  let words = '';
  const write = async (body) => {
    const answer = await fetch(product.url + target, { method, headers: { Authorization: product.key, 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return undefined;
    assert.ok(answer.status < 500, `${method} ${target}: ${answer.status} ${JSON.stringify(said)}`);
    words = said.Message;
    return (said.Problems ?? []).map((one) => one.path).filter(Boolean);
  };
  let left = textsOf(schema).filter((at) => !fixed.includes(at[0]) && !fixed.includes(at.join('.')));
  total.tried += left.length;
  let kept = [];
  for (const n of texts('').keys()) {
    const leaves = left.map((at) => ({ at, text: texts(`${what}/${at.join('/')}`)[n] }));
    const good = await taken(write, bodyWith(base, kept), leaves);
    kept = [...kept, ...good];
    left = left.filter((at) => !good.some((one) => one.at === at));
  }
  total.kept += kept.length;
  assert.ok(kept.length > 0, `${method} ${path} takes no such text: ${words}`);
  return { kept, refused: left.map((at) => at.join('.')) };
}

const filled = new Set();

// Bodies that are not kept, or that have the members of one which is filled.
const elsewhere = {
  ProbeBody: 'a question', PlayBody: 'a question', ExplainQuestion: 'a question', SchemaText: 'a question', Composed: 'a question', KeyNamed: 'a question',
  Batch: 'APIs and policies', Catalogue: 'entries', Policy: 'filled by another path', RollbackReason: 'the reason of a change', CertificateUpload: 'PEM; its names are tested in Go',
  KeyPolicies: 'ids', Rotation: 'a duration', CredentialsRotation: 'a duration', WebhooksRotation: 'a duration and a secret', TryBody: 'a question',
  DeveloperPassword: 'a password', DeveloperCredentials: 'a password', DevelopersPasswordChange: 'a password', PasswordChange: 'a password', PasswordReset: 'a password', OwnPassword: 'a password', SignUpVerification: 'a password',
  DeveloperLogin: 'sign-in', ForgottenPassword: 'sign-in', Forgotten: 'sign-in', Login: 'sign-in', Credentials: 'sign-in', Invitation: 'no text',
  StreamTrial: 'a question', Candidate: 'a question', StreamEvent: 'signed by a gateway; what it stores is for webhooks',
  SignUp: 'as a developer', Webhook: 'as Wanted', NewOrg: 'as ChangedOrg, user and session', SecretValue: 'a secret, never shown', NewDeveloper: 'as Developer',
};

const email = 'script@example.com';
const password = 'correct horse';
const b64 = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64');
const hostile = (name) => texts(name)[0];

/** A document with texts wherever OpenAPI has one. */
const openapi = {
  openapi: '3.0.3',
  info: { title: hostile('doc/title'), version: hostile('doc/version'), description: `${hostile('doc/info')} [link](javascript:ran('doc/link')) ![image](x" onerror="ran('doc/image'))` },
  tags: [{ name: hostile('doc/tag'), description: hostile('doc/tagText') }],
  paths: {
    [`/a"><script>ran('doc/path')</script>`]: {
      get: {
        operationId: 'first', summary: hostile('doc/summary'), description: `<script>ran('doc/text')</script>${hostile('doc/description')}`, tags: [hostile('doc/tag')],
        parameters: [{ name: hostile('doc/parameter'), in: 'query', description: hostile('doc/parameterText'), example: hostile('doc/example'), schema: { type: 'string', enum: [hostile('doc/enum')], default: hostile('doc/default') } }],
        responses: { 200: { description: hostile('doc/response'), content: { 'application/json': { example: { [hostile('doc/member')]: hostile('doc/value') } } } } },
      },
    },
  },
};
const comment = hostile('sdl/description').replaceAll('"', "'");
const sdl = `"""${comment}"""\ntype Query { """${comment}""" country("${comment}" code: String = "${comment}"): Country @deprecated(reason: "${comment}") }\n"${comment}"\ntype Country { "${comment}" name: String secret: Int }`;

async function store(t) {
  const say = (what, { kept, refused }) => t.diagnostic(`${what}: ${kept.length} fields hold a script${refused.length ? `; refused: ${refused.join(' ')}` : ''}`);
  const api = { api_id: 'script', name: 'script', use_keyless: false, auth: { auth_header_name: 'Authorization' }, proxy: { listen_path: '/script/', target_url: product.upstream }, event_handlers: { events: { AuthFailure: [{ handler_name: 'eh_web_hook_handler', handler_meta: { method: 'POST', target_path: 'https://hooks.example/' } }] } } };
  await rest('POST', '/api/apis', api);
  say('API', await fill('api', 'PUT', '/api/apis/{id}', api, { to: '/api/apis/script', fixed: ['api_id', 'id', 'org_id', 'proxy.listen_path', 'domain', 'slug'] }));
  const graph = { ...api, api_id: 'scriptql', name: hostile('graph/name'), proxy: { listen_path: '/scriptql/', target_url: product.upstream }, graphql: { enabled: true, execution_mode: 'proxyOnly', schema: sdl } };
  await rest('POST', '/api/apis', graph);
  const rights = { api_id: 'scriptql', allowed_urls: [{ url: '/.*', methods: ['GET'] }], restricted_types: [{ name: 'Country', fields: ['secret'] }] };
  const policy = { id: 'script', name: 'script', rate: 100, per: 1, quota_max: 100, quota_renewal_rate: 60, access_rights: { script: { api_id: 'script' }, scriptql: rights } };
  await rest('POST', '/api/portal/policies', policy);
  say('policy', await fill('policy', 'PUT', `/api/portal/policies/{id}?reason=${encodeURIComponent(hostile('reason'))}`, policy, { to: '/api/portal/policies/script', fixed: ['id', '_id', 'org_id', 'state', 'access_rights_array'] }));
  const session = { alias: 'x', access_rights: { scriptql: rights } };
  const { key_hash: hash } = await rest('POST', '/api/keys', session);
  say('key', await fill('key', 'PUT', '/api/keys/{key}', session, { to: `/api/keys/${hash}`, fixed: ['org_id', 'access_rights_array', 'apply_policies', 'apply_policy_id', 'key'] }));
  say('event webhook', await fill('hook', 'POST', '/api/hooks', { name: 'x', target_path: 'https://hooks.example/' }, { fixed: ['id'] }));
  const user = { email_address: 'user@example.com', first_name: 'x', role: 'viewer' };
  const made = await rest('POST', '/api/users', user);
  say('user', await fill('user', 'PUT', '/api/users/{id}', user, { to: `/api/users/${made.Meta ?? made.ID}`, fixed: ['org_id', 'role', 'id'] }));
  say('configuration', await fill('configuration', 'PUT', '/api/portal/configuration', {}, { fixed: ['id', 'org_id'] }));
  names.fields = (await rest('GET', '/api/portal/configuration')).key_request_fields[0];
  say('brand', await fill('brand', 'PUT', '/api/portal/brand', {}));
  const documents = [];
  for (const [kind, text, of] of [['openapi', openapi, 'script'], ['graphql', sdl, 'scriptql']]) {
    const document = { api_id: of, name: kind, doc_type: kind, documentation: b64(text) };
    const { Message: id } = await rest('POST', '/api/portal/documentation', document);
    say(`${kind} document`, await fill(`document/${kind}`, 'PUT', '/api/portal/documentation/{id}', document, { to: `/api/portal/documentation/${id}`, fixed: ['id', 'api_id', 'doc_type', 'documentation'] }));
    documents.push(id);
  }
  for (const [n, id] of ['script', 'scriptql'].entries()) {
    const entry = { id, name: id, show: true, api_id: id, policy_id: 'script', documentation: documents[n] };
    await rest('POST', '/api/portal/catalogue/entries', entry);
    say('catalogue', await fill(`entry/${id}`, 'PUT', '/api/portal/catalogue/entries/{id}', entry, { to: `/api/portal/catalogue/entries/${id}`, fixed: ['id', 'api_id', 'policy_id', 'documentation'] }));
  }
  say('menu', await fill('menu', 'PUT', '/api/portal/menus', { items: [{ text: 'x', url: '/portal/' }] }, { fixed: ['id', 'org_id'] }));
  say('pages', await fill('pages', 'PUT', '/api/portal/pages', { pages: [{ title: 'x', path: 'script', body: 'x' }] }, { fixed: ['id', 'org_id'] }));
  const { Message: developer } = await rest('POST', '/api/portal/developers', { email, password });
  const { key_id: key } = await rest('POST', `/api/portal/developers/${developer}/keys`, { apply_policies: ['script'] });
  const have = await rest('GET', `/api/portal/developers/${developer}`);
  say('developer', await fill('developer', 'PUT', '/api/portal/developers/{id}', have, { to: `/api/portal/developers/${developer}`, fixed: ['id', 'org_id', 'email', 'keys', 'subscriptions', 'oauth_clients', 'nonce'] }));
  say("developer's key", await fill('issued', 'POST', '/api/portal/developers/{id}/keys', { apply_policies: ['script'] }, { to: `/api/portal/developers/${developer}/keys`, fixed: ['apply_policies'] }));
  await rest('POST', '/api/apis', { api_id: 'apps', name: 'apps', use_keyless: false, use_oauth2: true, auth: { auth_header_name: 'Authorization' }, proxy: { listen_path: '/apps/', target_url: product.upstream } });
  await rest('POST', '/api/portal/policies', { id: 'apps', name: 'apps', access_rights: { apps: { api_id: 'apps' } } });
  await rest('POST', '/api/portal/catalogue/entries', { id: 'apps', name: 'apps', show: true, api_id: 'apps', policy_id: 'apps', auth_type: 'oauth' });
  say('OAuth client', await fill('client', 'POST', '/api/portal/developers/{id}/oauth-clients', { policy_id: 'apps', redirect_uri: 'https://app.example/' }, { to: `/api/portal/developers/${developer}/oauth-clients`, fixed: ['policy_id'] }));
  say('key request', await fill('request', 'POST', '/api/portal/requests', { for_plan: 'script', version: 'v2', by_user: developer }, { fixed: ['for_plan', 'by_user', 'version', 'id'] }));
  const [asked] = (await rest('GET', '/api/portal/requests?p=1')).Data;
  say('rejection', await fill('rejection', 'PUT', '/api/portal/requests/reject/{id}', {}, { to: `/api/portal/requests/reject/${asked.id}` }));
  for (const developer_id of ['', developer]) {
    say('webhook', await fill('webhook', 'POST', '/api/portal/webhooks', { name: 'x', url: 'https://hooks.example/', events: ['*'], developer_id }, { fixed: ['developer_id', 'secret', 'events'] }));
  }
  const { id: org } = (await rest('GET', '/api/users')).users?.[0]?.org_id ? { id: (await rest('GET', '/api/users')).users[0].org_id } : { id: 'default' };
  say('organisation', await fill('organisation', 'PUT', '/api/orgs/{id}', { name: 'x' }, { to: `/api/orgs/${org}`, fixed: ['limits'] }));
  // What callers send is shown too: paths, keys, and names of operations.
  const bad = await Promise.all([`/script/a%22%3E%3Cscript%3Eran('path')%3C/script%3E?q=%3Cimg%20src=x%20onerror=ran('query')%3E`, '/scriptql/'].map((path) =>
    fetch(product.gateway + path, { method: 'POST', headers: { Authorization: `"><script>ran('key')</script>`, 'User-Agent': `<script>ran('agent')</script>`, 'X-Request-Id': 'stored-script' }, body: '{"query":"query ran{country{name}}"}' })));
  assert.ok(bad.every((one) => one.status >= 400));
  return { hash, developer, key, documents };
}

/** Opens pages in a few tabs at once; what is shown on each. */
async function look(context, addresses, check) {
  const left = [...addresses];
  let shown = 0;
  const tab = async () => {
    const page = await context.newPage();
    for (let path = left.shift(); path !== undefined; path = left.shift()) {
      await page.goto(product.url + path, { waitUntil: 'commit' });
      await page.locator('h1').first().waitFor();
      await page.locator('[data-loading]').first().waitFor({ state: 'detached' });
      const found = await page.evaluate(() => ({
        ran: globalThis.scriptsRan,
        elements: [...document.querySelectorAll('[onerror], [onclick], [onload], img[src="x"], [href^="javascript:" i], [src^="javascript:" i], main script:not([src])')].map((one) => one.outerHTML.slice(0, 200)),
        text: /ran\(/.test(document.body.innerText + [...document.querySelectorAll('input, textarea')].map((one) => one.value).join(' ')),
      }));
      assert.deepEqual(found.ran, [], `scripts ran on ${path}`);
      assert.deepEqual(found.elements, [], `elements of stored texts on ${path}`);
      if (found.text) shown++;
    }
    await page.close();
  };
  await Promise.all([tab(), tab(), tab(), tab()]);
  check(shown);
  return shown;
}

const read = (path) => readFileSync(new URL(`../../../../admin/ui/web/src/pages/${path}`, import.meta.url), 'utf8');

story('A script that is stored in any text runs on no page', async ({ t, page, context, step, signIn, open }) => {
  await context.addInitScript(() => {
    globalThis.scriptsRan = [];
    globalThis.ran = (name) => globalThis.scriptsRan.push(name);
  });
  const ids = await store(t);
  t.diagnostic(`${total.kept} of ${total.tried} fields hold a script`);
  assert.ok(total.kept >= 300, `${total.kept} fields hold a script`);
  // Every body of the REST that has texts is filled, or named above with the reason. Gateways
  // hand over what callers send, which store() does too.
  const missing = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).flatMap((method) => {
      const name = bodyOf(method, path)?.$ref?.split('/').at(-1);
      return name && !path.startsWith('/api/gateway/') && !filled.has(`#/components/schemas/${name}`) && !elsewhere[name] ? [`${method} ${path}: ${name}`] : [];
    }));
  assert.deepEqual(missing, []);
  await signIn();
  const tabsOf = (area) => [.../tabs: \{([^}]*)\}/.exec(read(`${area}/text.ts`))[1].matchAll(/(\w+):/g)].map(([, name]) => (name === 'overview' ? '' : `/${name}`));
  const areas = [...read('index.ts').matchAll(/paths: \[([^\]]*)\]/g)].flatMap((list) => [...list[1].matchAll(/'([^']*)'/g)].map((one) => one[1])).filter((path) => !path.includes('$') && !['/enter', '/sign-in'].includes(path));
  const first = async (path, pick = (all) => all.Data) => encodeURIComponent(pick(await rest('GET', path))[0].id);
  await step('pages of the UI', async () => {
    const { revision } = await rest('GET', '/api/config');
    const one = [
      ...['script', 'scriptql'].flatMap((id) => tabsOf('apis').map((tab) => `/apis/${id}${tab}`)),
      ...tabsOf('policies').map((tab) => `/policies/script${tab}`),
      ...['', '/edit', '/usage', '/refusals'].map((tab) => `/keys/${ids.hash}${tab}`),
      `/developers/${ids.developer}`, '/catalogue/script', '/catalogue/scriptql', ...ids.documents.map((id) => `/documents/${id}`),
      `/requests?state=any&open=${await first('/api/portal/requests')}`, `/webhooks?open=${await first('/api/portal/webhooks')}`, `/changes/${revision}`, `/changes/${revision - 1}`, '/why/stored-script',
    ];
    await look(context, [...areas, ...one], (shown) => assert.ok(shown >= 45, `${shown} pages show the texts`));
    await open('/about');
  });
  await step('the palette', async () => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search' }).fill('script');
    await page.getByRole('option', { name: /ran\(/ }).first().waitFor();
    assert.deepEqual(await page.evaluate(() => globalThis.scriptsRan), []);
    await page.keyboard.press('Escape');
  });
  await step('pages of the portal', async () => {
    await open('/portal/login');
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('main').getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    const menu = await page.locator('a[href*="/portal/pages/"]').evaluateAll((all) => all.map((one) => new URL(one.href).pathname));
    const offers = ['script', 'scriptql'].flatMap((id) => ['', '/docs', '/play'].map((tab) => `/portal/apis/${id}${tab}`));
    await look(
      context,
      ['/portal/', ...offers, '/portal/apis/script/docs/first', '/portal/apis/scriptql/docs/query.country', '/portal/request/script', '/portal/requests', '/portal/keys', `/portal/keys/${ids.key}`, '/portal/clients', '/portal/webhooks', '/portal/account', '/portal/signup', ...menu],
      (shown) => assert.ok(shown >= 14, `${shown} pages show the texts`),
    );
    await open('/portal/account');
  });
}, { timeout: 200_000, allow: [/status of 40[0-9]/] });
