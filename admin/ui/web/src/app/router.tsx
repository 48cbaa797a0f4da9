import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Navigate } from '@tanstack/react-router';
import { base } from '../lib';
import { areas, bare } from '../pages';
import { Missing, PageFailure } from './fallbacks';
import { Root } from './Root';

// The address holds plain text: ?q=a&kind=rest, not JSON.
function parseSearch(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

function stringifySearch(search: Record<string, unknown>): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== '') all.set(name, String(value));
  }
  const text = all.toString();
  return text && `?${text}`;
}

const root = createRootRoute({ component: Root, notFoundComponent: Missing, errorComponent: PageFailure });

const routes = areas.flatMap((area) =>
  area.paths.map((path) =>
    createRoute({
      getParentRoute: () => root,
      path,
      component: lazyRouteComponent(async () => {
        const page = (await area.load()).pages[path];
        if (!page) throw new Error(`pages/${area.name} exports no page for ${path}`);
        return { default: page };
      }),
      errorComponent: PageFailure,
    }),
  ),
);

// The root draws sign-in at these. Those who are signed in have no business at /sign-in; at
// /enter the page itself says where to go next.
const home = () => <Navigate to={'/' as never} replace />;
const bareRoutes = bare.paths.map((path) => createRoute({ getParentRoute: () => root, path, component: path === '/enter' ? () => null : home }));

export const router = createRouter({
  routeTree: root.addChildren([...routes, ...bareRoutes]),
  basepath: base,
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: false,
  defaultPendingMs: 150,
  defaultNotFoundComponent: Missing,
});
