// The public page of one API, which the gateway serves below the API's listen path. The
// page and its script are all that it loads; calls go to the API itself. The portal serves
// the same script on a page of its own.
import { buildClientSchema, getIntrospectionQuery, type IntrospectionQuery } from 'graphql';
import { direct } from './direct';
import { mount, type Visible } from './index';
import { mountPortal } from './portal';
import { tokens } from './style';

const host = document.getElementById('playground')!;
if (host.dataset.relay) mountPortal(host);
else mountPublic();

function mountPublic() {
  const page = new CSSStyleSheet();
  page.replaceSync(tokens);
  document.adoptedStyleSheets = [page];

  const name = host.dataset.name ?? '';
  // The page knows neither its host nor what stands before the listen path: the endpoint is
  // as many levels up as the server says.
  const endpoint = new URL(host.dataset.endpoint ?? '..', location.href).pathname + keyOf(location.search, host.dataset.param ?? '');
  const transport = direct(endpoint);

  const playground = mount(host, { name: `${location.pathname}`, transport, visible });
  document.title = name ? `${name} playground` : 'Playground';

  // The schema depends on the credentials: it is read again once they have changed.
  let before = JSON.stringify(playground.headers());
  host.shadowRoot!.addEventListener('focusout', () => {
    const now = JSON.stringify(playground.headers());
    if (now === before) return;
    before = now;
    playground.refresh();
  });

  async function visible(signal: AbortSignal): Promise<Visible> {
    const headers = playgroundHeaders();
    for await (const answer of transport.send({ query: getIntrospectionQuery({ inputValueDeprecation: false }), headers, signal })) {
      const said = JSON.parse(answer.body) as { data?: IntrospectionQuery; error?: string; errors?: { message: string }[] };
      if (answer.status < 300 && said.data) return { schema: buildClientSchema(said.data) };
      const why = said.error ?? said.errors?.[0]?.message ?? `status ${answer.status}`;
      return { why: `There is no schema to show: ${why}. ${answer.status === 401 || answer.status === 403 ? 'Put your credentials into Headers.' : ''}` };
    }
    return {};
  }

  function playgroundHeaders(): Record<string, string> {
    try {
      return playground.headers();
    } catch {
      return {}; // the first time: it is being mounted
    }
  }
}

/** The key that the page was opened with goes on with each call. */
function keyOf(search: string, param: string): string {
  const key = param ? new URLSearchParams(search).get(param) : null;
  return key ? `?${new URLSearchParams({ [param]: key })}` : '';
}
