import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/query';
import { startPulse } from './app/pulse';
import { openSession } from './app/session';
import { router } from './app/router';
import { startShortcuts } from './app/shortcuts';
import { base, kept, reload } from './lib';
import './styles/tokens.css';
import './styles/base.css';

// A tab that outlives an upgrade asks for a chunk that is gone: load the page again, once.
// Drafts are in sessionStorage by then.
addEventListener('vite:preloadError', (event) => {
  const last = Number(kept.get('session', 'reloaded') ?? 0);
  if (Date.now() - last < 60_000) return; // the error panel says so
  event.preventDefault();
  kept.set('session', 'reloaded', String(Date.now()));
  reload();
});

// Asked for before anything is drawn. A one-time link makes a session of its own.
if (location.pathname !== `${base}enter`) void openSession();
startShortcuts();
startPulse();

createRoot(document.getElementById('root')!).render(
  <CSPProvider disableStyleElements>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </CSPProvider>,
);
