// What the admin answers where calls go through it: in the management UI and the portal.
import type { Limits, Visible } from './index';
import type { Answer, Explanation } from './transport';

/** A call's answer. */
export interface Sent {
  status: number;
  headers: { name: string; value: string }[];
  body: string;
  body_base64?: string;
  cut: boolean;
  sent: boolean;
  request_id: string;
  took_ms: number;
  upstream_ms?: number;
  counted?: boolean;
  explanation?: Explanation;
}

/** What a caller may use of a schema. */
export interface Seen {
  allowed: boolean;
  schema: string;
  introspection: boolean;
  depth_base: number;
  max_depth: number;
  max_cost: number;
  list_size: number;
  size_arguments: string[];
  field_depths: Limits['fieldDepths'];
}

export function answerOf(got: Sent): Answer {
  return {
    status: got.status,
    headers: got.headers.map((one) => [one.name, one.value]),
    body: got.sent ? got.body || (got.body_base64 ?? '') : '',
    cut: got.cut,
    requestID: got.request_id || undefined,
    tookMS: got.took_ms,
    upstreamMS: got.upstream_ms,
    counted: got.counted,
    explanation: got.explanation,
  };
}

export function visibleOf(seen: Seen): Visible {
  const limits: Limits = {
    depthBase: seen.depth_base,
    maxDepth: seen.max_depth,
    maxCost: seen.max_cost,
    listSize: seen.list_size,
    sizeArguments: seen.size_arguments,
    fieldDepths: seen.field_depths,
  };
  if (!seen.allowed) return { why: 'This caller may not call the API.', limits };
  return { schema: seen.schema || undefined, why: 'The field rules leave nothing that could be queried.', limits };
}
