import { useRead } from '../api/query';
import { request } from '../api/client';

/** Where callers reach the gateways, without a slash at the end; '' while it is not known. */
export function useGatewayURL(): string {
  const state = useRead(['gateway-url'], (signal) => request<{ gateway_url?: string }>('GET', '/api/config', { signal }), { staleTime: 300_000 });
  return (state.data?.gateway_url ?? '').replace(/\/+$/, '');
}

/** The address of a path on the gateways, for callers. A pattern or a host of its own stays as it is written. */
export function addressOf(gateway: string, domain: string, path: string): string {
  if (!gateway) return domain + path;
  if (!domain) return gateway + path;
  const at = new URL(gateway);
  return `${at.protocol}//${domain}${at.port ? `:${at.port}` : ''}${path}`;
}
