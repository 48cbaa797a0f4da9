// The public page of one API, which the gateway serves below the API's listen path. The
// page and its script are all that it loads; calls go to the API itself. The portal serves
// the same script on a page of its own.
import { direct } from './direct';
import { mount, type Visible } from './index';
import { mountPortal } from './portal';
import { type Seen, visibleOf } from './relay';
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
  const key = keyOf(location.search, host.dataset.param ?? '');
  const endpoint = new URL(host.dataset.endpoint ?? '..', location.href).pathname + key;
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
    const url = new URL(host.dataset.schema ?? 'schema', location.href).pathname + key;
    const answer = await fetch(url, { headers: { accept: 'application/json', ...playgroundHeaders() }, credentials: 'same-origin', signal });
    const said = (await answer.json()) as Seen & { error?: string };
    if (answer.ok) return visibleOf(said);
    return { why: `There is no schema to show: ${said.error ?? `status ${answer.status}`}. ${answer.status === 401 || answer.status === 403 ? 'Put your credentials into Headers.' : ''}` };
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
