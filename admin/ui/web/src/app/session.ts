// Who is signed in.
import { csrf, onSignedOut, request } from '../api/client';
import { Failure } from '../api/failure';
import { queryClient } from '../api/query';
import { createStore, useStore } from '../lib';

export type Role = 'viewer' | 'approver' | 'editor' | 'admin';
const ranks: Role[] = ['viewer', 'approver', 'editor', 'admin'];

export interface User {
  id: string;
  email_address: string;
  first_name: string;
  last_name: string;
  role: Role;
  org_id: string;
  has_password?: boolean;
}

interface Answer {
  user: User;
  csrf_token: string;
  expires_at?: string;
  needs_password?: boolean;
}

export type Credentials = { email: string; password: string } | { access_key: string } | { enter: string };

interface State {
  state: 'loading' | 'in' | 'out' | 'failed';
  user?: User;
  /** To change the password, the one in force must be shown. */
  needsPassword?: boolean;
  /** The session ended while the page was open: sign-in lies over it. */
  ended: boolean;
  failure?: Error;
}

export const session = createStore<State>({ state: 'loading', ended: false });

let waiting: { promise: Promise<void>; resolve: () => void; reject: (cause: Error) => void } | undefined;

onSignedOut(() => {
  const now = session.get();
  if (now.state !== 'in') {
    session.set({ state: 'out', ended: false });
    return Promise.reject(new Failure(401, 'Not signed in.', '', ''));
  }
  if (!waiting) {
    let resolve = () => {};
    let reject: (cause: Error) => void = () => {};
    const promise = new Promise<void>((a, b) => {
      resolve = a;
      reject = b;
    });
    waiting = { promise, resolve, reject };
    session.set({ ...now, ended: true });
  }
  return waiting.promise;
});

function accept(answer: Answer): void {
  csrf.token = answer.csrf_token ?? '';
  const before = session.get().user;
  const other = before !== undefined && before.id !== answer.user.id;
  session.set({ state: 'in', user: answer.user, needsPassword: answer.needs_password, ended: false });
  if (other) {
    // Somebody else: nothing of the former user's is repeated or shown.
    waiting?.reject(new Failure(401, 'Another user has signed in.', '', ''));
    queryClient.clear();
    location.reload();
  } else {
    waiting?.resolve();
  }
  waiting = undefined;
}

/** Asks the server who is signed in. */
export async function openSession(): Promise<void> {
  try {
    accept(await request<Answer>('GET', '/api/session'));
  } catch (cause) {
    if (import.meta.env.DEV && cause instanceof Failure && cause.status > 400) {
      // A development server that shows an access key has no session.
      const user = await request<User>('GET', '/api/users/me').catch(() => undefined);
      if (user) {
        session.set({ state: 'in', user, ended: false });
        return;
      }
    }
    const out = cause instanceof Failure && cause.status === 401;
    session.set({ state: out ? 'out' : 'failed', ended: false, failure: cause as Error });
  }
}

/** Takes over what has changed about the session. */
export async function refreshSession(): Promise<void> {
  accept(await request<Answer>('GET', '/api/session'));
}

export async function signIn(with_: Credentials): Promise<void> {
  accept(await request<Answer>('POST', '/api/session', { body: with_ }));
}

export async function signOut(): Promise<void> {
  await request('DELETE', '/api/session').catch((cause: unknown) => {
    if (!(cause instanceof Failure && cause.status === 401)) throw cause;
  });
  csrf.token = '';
  queryClient.clear();
  session.set({ state: 'out', ended: false });
}

export const roleAllows = (has: Role, wants: Role) => ranks.indexOf(has) >= ranks.indexOf(wants);

export function useUser(): User {
  const { user } = useStore(session);
  return user ?? { id: '', email_address: '', first_name: '', last_name: '', role: 'viewer', org_id: '' };
}

/** Whether the user may do what a role may. */
export function useCan(role: Role): boolean {
  return roleAllows(useUser().role, role);
}

export function nameOf(user: Pick<User, 'first_name' | 'last_name' | 'email_address'>): string {
  return `${user.first_name} ${user.last_name}`.trim() || user.email_address;
}
