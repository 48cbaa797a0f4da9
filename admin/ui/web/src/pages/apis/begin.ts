// What a definition can take over from a URL or from an OpenAPI document.
import { setAt } from '../../parts/draft/merge';

/** A URL that can be an upstream. */
export function baseOf(text: string): URL | undefined {
  try {
    const url = new URL(text.trim());
    return url.protocol === 'http:' || url.protocol === 'https:' ? url : undefined;
  } catch {
    return undefined;
  }
}

/** A host that says nothing about what it serves: an address, or this machine. */
const nameless = /^(localhost|[\d.]+|\[.*\])$/;

/** A part of a path that stands for a name or a URL: "Order service" is order-service. */
export function slugOf(text: string): string {
  const url = baseOf(text);
  const words = url ? (nameless.test(url.hostname) ? url.pathname.split('/').filter(Boolean).at(-1) ?? '' : url.hostname.split('.')[0]!) : text;
  const slug = words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return slug || 'api';
}

/**
 * Title and first server of an OpenAPI document, in JSON or YAML; undefined if it is none.
 * Of YAML only these two members are read, as documents are commonly written: the block
 * `info:` with `title:`, and `servers:` with `- url:`.
 */
export function readDocument(text: string, from?: string): { name: string; target?: string } | undefined {
  let name = '';
  let server = '';
  try {
    const document = JSON.parse(text) as { openapi?: unknown; swagger?: unknown; info?: { title?: unknown }; servers?: { url?: unknown }[]; host?: unknown; basePath?: unknown; schemes?: unknown[] };
    if (!document.openapi && !document.swagger) return undefined;
    name = String(document.info?.title ?? '');
    server = String(document.servers?.[0]?.url ?? '');
    if (!server && document.host) server = `${String(document.schemes?.[0] ?? 'https')}://${String(document.host)}${String(document.basePath ?? '/')}`;
  } catch {
    if (!/^(openapi|swagger)\s*:/m.test(text)) return undefined;
    const unquoted = (value?: string) => (value ?? '').trim().replace(/^(['"])(.*)\1$/, '$2');
    name = unquoted(/^info\s*:[^\n]*\n(?:[ \t]+[^\n]*\n|\s*\n)*?[ \t]+title\s*:\s*([^\n#]+)/m.exec(text)?.[1]);
    server = unquoted(/^servers\s*:[^\n]*\n(?:[^\n]*\n)*?[ \t]*-?[ \t]*url\s*:\s*([^\n#]+)/m.exec(text)?.[1]);
  }
  let target: string | undefined;
  try {
    target = new URL(server, from).href;
  } catch {
    // no whole URL: the upstream is to be filled in
  }
  return { name, target };
}

/** The text with the members of one way to authenticate, and without those of others. */
export function withAuth(text: string, mode: string): string {
  const all: Record<string, boolean | undefined> = {
    use_keyless: mode === 'keyless' || undefined,
    use_basic_auth: mode === 'basic' || undefined,
    use_standard_auth: undefined,
  };
  return Object.entries(all).reduce((now, [member, value]) => setAt(now, [member], value), text);
}
