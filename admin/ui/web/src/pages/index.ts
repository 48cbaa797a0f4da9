// The areas of the UI, in the order of the navigation. Each has one line and one chunk:
// its folder exports `pages`, a component for each of the paths. The navigation shows
// what is listed here. The packer reads the paths from this file, one `paths: [...]` a
// line, so that the server knows which addresses are pages.
import type { ComponentType } from 'react';
import type { Role } from '../app/session';

export interface Area {
  name: string;
  /** In the navigation; without a label the area is not in it. */
  label?: string;
  group?: 'gateway' | 'portal' | 'insight' | 'system';
  /** The letter after g that goes there. */
  go?: string;
  /** The letter after c that begins a new one, at the first path with /new; for editors. */
  create?: { key: string; label: string };
  /** Lowest role that may see it; viewer if left out. */
  role?: Role;
  paths: string[];
  load: () => Promise<{ pages: Record<string, ComponentType> }>;
}

/** Drawn by the root without the frame. */
export const bare = { paths: ['/enter', '/sign-in'] };

export const areas: Area[] = [
  { name: 'home', label: 'Home', go: 'h', paths: ['/'], load: () => import('./home') },
  { name: 'apis', label: 'APIs', group: 'gateway', go: 'a', create: { key: 'a', label: 'New API' }, paths: ['/apis', '/apis/new', '/apis/$id', '/apis/$id/$tab'], load: () => import('./apis') },
  { name: 'policies', label: 'Policies', group: 'gateway', go: 'p', create: { key: 'p', label: 'New policy' }, paths: ['/policies', '/policies/new', '/policies/$id', '/policies/$id/$tab'], load: () => import('./policies') },
  { name: 'keys', label: 'Keys', group: 'gateway', go: 'k', create: { key: 'k', label: 'New key' }, paths: ['/keys', '/keys/new', '/keys/$hash', '/keys/$hash/edit', '/keys/$hash/usage', '/keys/$hash/refusals'], load: () => import('./keys') },
  { name: 'requests', label: 'Key requests', group: 'portal', go: 'r', paths: ['/requests'], load: () => import('./requests') },
  { name: 'developers', label: 'Developers', group: 'portal', go: 'd', paths: ['/developers', '/developers/$id'], load: () => import('./developers') },
  { name: 'catalogue', label: 'Catalogue', group: 'portal', paths: ['/catalogue', '/catalogue/new', '/catalogue/$id'], load: () => import('./catalogue') },
  { name: 'documents', label: 'Documents', group: 'portal', paths: ['/documents', '/documents/new', '/documents/$id'], load: () => import('./documents') },
  { name: 'webhooks', label: 'Webhooks', group: 'portal', paths: ['/webhooks'], load: () => import('./webhooks') },
  { name: 'deliveries', label: 'Deliveries', group: 'portal', paths: ['/deliveries'], load: () => import('./deliveries') },
  { name: 'mailbox', label: 'Mailbox', group: 'portal', role: 'admin', paths: ['/mailbox'], load: () => import('./mailbox') },
  { name: 'portal-settings', label: 'Portal settings', group: 'portal', paths: ['/portal-settings'], load: () => import('./portal-settings') },
  { name: 'traffic', label: 'Traffic', group: 'insight', go: 't', paths: ['/traffic', '/traffic/refusals'], load: () => import('./traffic') },
  { name: 'connections', label: 'Connections', group: 'insight', paths: ['/connections'], load: () => import('./connections') },
  { name: 'streams', label: 'Streams', group: 'insight', paths: ['/streams'], load: () => import('./streams') },
  { name: 'why', label: 'Why', group: 'insight', paths: ['/why', '/why/$id'], load: () => import('./why') },
  { name: 'users', label: 'Users', group: 'system', role: 'admin', paths: ['/users'], load: () => import('./users') },
  { name: 'changes', label: 'Changes', group: 'system', go: 'c', paths: ['/changes', '/changes/$n'], load: () => import('./changes') },
  { name: 'gateways', label: 'Gateways', group: 'system', paths: ['/gateways'], load: () => import('./gateways') },
  { name: 'certificates', label: 'Certificates', group: 'system', paths: ['/certificates'], load: () => import('./certificates') },
  { name: 'secrets', label: 'Secrets', group: 'system', role: 'editor', paths: ['/secrets'], load: () => import('./secrets') },
  { name: 'events', label: 'Events', group: 'system', paths: ['/events'], load: () => import('./events') },
  { name: 'audit', label: 'Audit log', group: 'system', role: 'admin', paths: ['/audit'], load: () => import('./audit') },
  { name: 'settings', label: 'Settings', group: 'system', role: 'admin', paths: ['/settings', '/settings/checks'], load: () => import('./settings') },
  { name: 'account', paths: ['/account'], load: () => import('./account') },
  { name: 'about', paths: ['/about'], load: () => import('./about') },
];
