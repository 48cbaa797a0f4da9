import { useLocation } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useStore } from '../lib';
import { ErrorPanel } from '../parts/ErrorPanel';
import { Layout } from './Layout';
import { openSession, session } from './session';

const SignIn = lazy(() => import('../pages/sign-in'));

/** Chooses between sign-in and the pages. */
export function Root() {
  const now = useStore(session);
  const path = useLocation({ select: (location) => location.pathname });
  if (path === '/enter' || now.state === 'out') {
    return (
      <Suspense fallback={null}>
        <SignIn />
      </Suspense>
    );
  }
  if (now.state === 'failed') {
    return (
      <main id="main">
        <ErrorPanel failure={now.failure} retry={() => void openSession()} />
      </main>
    );
  }
  return (
    <>
      <Layout ready={now.state === 'in'} />
      {now.ended && (
        <Suspense fallback={null}>
          <SignIn over />
        </Suspense>
      )}
    </>
  );
}
