import type { ReactNode } from 'react';
import { useRead } from '../../api/query';
import { addressOf, useGatewayURL } from '../../app/gateway';
import { Card, Cards, Facts } from '../../parts/Card';
import { Copy } from '../../parts/Copy';
import type { Draft } from '../../parts/draft';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { duration, number, percent } from '../../text/en';
import { loadUsage, loadUses } from './read';
import { text as t } from './text';
import css from './apis.module.css';

/** How callers authenticate, by the members of a definition. */
export function authsOf(draft: Draft): string[] {
  if (draft.get('use_keyless')) return [t.auths.keyless!];
  const modes = [
    ['use_basic_auth', 'basic'],
    ['enable_jwt', 'jwt'],
    ['use_oauth2', 'oauth'],
  ].filter(([member]) => draft.get(member!));
  const all = modes.map(([, mode]) => t.auths[mode!]!);
  if (draft.get('use_standard_auth') || modes.length === 0) all.push(t.auths.token!);
  if (draft.get('use_mutual_tls_auth')) all.push(t.auths.mtls!);
  return all;
}

export function Overview({ id, draft, fields }: { id: string; draft: Draft; fields: ReactNode }) {
  const usage = useRead(['api', id, 'usage', 'day'], (signal) => loadUsage(id, { group_by: 'api' }, signal), { on: ['usage_until'] });
  const uses = useRead(['api', id, 'uses'], (signal) => loadUses(id, signal), { on: ['revision'] });
  const at = `/apis/${encodeURIComponent(id)}`;
  const address = addressOf(useGatewayURL(), draft.get<string>('domain') ?? '', draft.get<string>('proxy.listen_path') ?? '');
  return (
    <>
      <Cards>
        <Card title={t.tabs.routing}>
          <Facts
            of={[
              [t.fact.address, <><span className={css.path}>{address}</span> <Copy text={address} label={t.fact.address} /></>],
              [t.fact.upstream, <span className={css.path}>{draft.get<string>('proxy.target_url') || '–'}</span>],
              [t.fact.kind, draft.get('graphql.enabled') ? t.kinds.graphql : draft.get('x-svc-streaming.streams') ? t.kindStreams : t.kinds.rest],
              [t.fact.auth, authsOf(draft).join(', ')],
            ]}
          />
        </Card>
        <Card title={t.last24} actions={<Link to={`${at}/traffic`}>{t.tabs.traffic}</Link>}>
          <Loaded query={usage}>
            {({ totals, Data }) => (
              <Facts
                of={[
                  [t.calls, number(totals.hits)],
                  [t.errors, totals.hits > 0 ? `${number(totals.errors)} (${percent(totals.errors / totals.hits)})` : '0'],
                  [t.p99, Data?.[0]?.p99_ms !== undefined ? duration(Data[0].p99_ms) : '–'],
                  [t.mean, totals.hits > 0 ? duration(totals.mean_ms) : '–'],
                  [t.meanUpstream, totals.hits > 0 ? duration(totals.upstream_mean_ms) : '–'],
                ]}
              />
            )}
          </Loaded>
        </Card>
        <Card title={t.tabs.uses} actions={<Link to={`${at}/uses`}>{t.tabs.uses}</Link>}>
          <Loaded query={uses}>
            {(all) => (
              <Facts
                of={[
                  [t.uses.policies, number(all.policy_count)],
                  [t.uses.keys, t.keys(all.keys, all.keys_capped)],
                  [t.uses.catalogue, number(all.catalogue_count)],
                  [t.uses.calls, number(all.calls_30d)],
                ]}
              />
            )}
          </Loaded>
        </Card>
      </Cards>
      {fields}
    </>
  );
}
