// The pulse: a few numbers that say what has changed. One tab asks for all.
import { Failure } from '../api/failure';
import { request } from '../api/client';
import { queryClient, type Pulsed } from '../api/query';
import { createStore } from '../lib';
import { session } from './session';

export interface Pulse {
  revision: number;
  generation: number;
  gateways: number;
  up_to_date: number;
  pending_requests?: number;
  failed_deliveries?: number;
  usage_until?: string;
  version?: string;
}

export const pulse = createStore<Pulse | undefined>(undefined);

const visible = 5_000;
const hidden = 30_000;
const quick = 500;

let watching: { revision: number; until: number; done?: (ready: number, all: number) => void } | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let leader = false;
const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel('sluice-pulse');

function take(next: Pulse): void {
  const before = pulse.get();
  pulse.set(next);
  if (!before) return;
  const changed = (Object.keys(next) as (keyof Pulse)[]).filter((name) => before[name] !== next[name]);
  if (changed.length === 0) return;
  void queryClient.invalidateQueries({
    predicate: (query) => ((query.meta?.on ?? []) as Pulsed[]).some((name) => changed.includes(name)),
  });
}

async function ask(): Promise<void> {
  if (session.get().state !== 'in' || session.get().ended) return;
  try {
    const next = await request<Pulse>('GET', '/api/pulse').catch((cause: unknown) => {
      // An admin without a pulse has the state of the configuration.
      if (cause instanceof Failure && cause.status === 404) return request<Pulse>('GET', '/api/config');
      throw cause;
    });
    take(next);
    if (leader) channel?.postMessage({ pulse: next });
  } catch {
    // The banner says that the server is away; the next round asks again.
  }
}

function arrived(): boolean {
  const now = pulse.get();
  return !watching || Date.now() > watching.until || (now !== undefined && now.revision >= watching.revision && now.up_to_date >= now.gateways);
}

function next(): void {
  clearTimeout(timer);
  if (watching && arrived()) {
    const { done } = watching;
    const now = pulse.get();
    watching = undefined;
    if (now && now.gateways > 0) done?.(now.up_to_date, now.gateways);
  }
  const wait = watching ? quick : document.hidden ? hidden : visible;
  timer = setTimeout(() => void round(), wait);
}

async function round(): Promise<void> {
  // A visible tab that is not the leader asks only while it watches a publication.
  if (leader || watching) await ask();
  next();
}

/** Begins to ask. Where the context is secure, one tab asks for all. */
export function startPulse(): void {
  channel?.addEventListener('message', (event: MessageEvent<{ pulse?: Pulse; visible?: boolean }>) => {
    if (event.data.pulse) take(event.data.pulse);
    if (event.data.visible && leader) void ask(); // another tab came to the front
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return;
    if (leader) void round();
    else channel?.postMessage({ visible: true });
  });
  session.subscribe(() => {
    if (session.get().state === 'in' && !pulse.get()) void ask().then(next);
  });
  if (navigator.locks && channel) {
    void navigator.locks.request('sluice-pulse', () => {
      leader = true;
      next();
      return new Promise(() => {}); // kept until the tab ends
    });
    void ask();
  } else {
    leader = true;
    void ask().then(next);
  }
}

/**
 * Asks every 500 ms until all gateways have a revision, at most 30 s. `done` gets how many
 * are up to date then, unless another revision was published meanwhile.
 */
export function watchRevision(revision: number, done?: (ready: number, all: number) => void): void {
  watching = { revision, until: Date.now() + 30_000, done };
  clearTimeout(timer);
  void round();
}
