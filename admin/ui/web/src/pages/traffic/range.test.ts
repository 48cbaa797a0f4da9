import { describe, expect, it } from 'vitest';
import { momentsOf, most, rangeOf, spanOf, valuesOf, type UsageRow } from './range';

const row = (at: string, hits: number, reason = ''): UsageRow => ({ at, hits, errors: 0, mean_ms: 1, upstream_mean_ms: 0, reason });

describe('ranges', () => {
  const now = Date.parse('2026-01-02T03:04:05Z');
  it('have a name or two ends', () => {
    expect(rangeOf({}, '1h', now)).toEqual({ from: Date.parse('2026-01-02T02:05:00Z') / 1000, to: Date.parse('2026-01-02T03:05:00Z') / 1000, step: 'minute', value: '1h' });
    expect(rangeOf({ from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00Z' }, '1h', now).step).toBe('hour');
    expect(rangeOf({ from: 'x', to: 'y', range: 'none' }, '7d', now).value).toBe('7d');
  });
  it('end now, however long the page has been open', () => {
    expect(spanOf({}, '1h', now + 60_000).to).toBe(Date.parse('2026-01-02T03:06:00Z') / 1000);
  });
  it('have a value for each moment', () => {
    const range = rangeOf({ from: '2026-01-01T00:00:30Z', to: '2026-01-01T00:03:00Z' });
    const moments = momentsOf(range);
    expect(moments).toHaveLength(3);
    expect(valuesOf(moments, [row('2026-01-01T00:01:00Z', 2), row('2026-01-01T00:01:00Z', 3, 'x'), row('2026-01-01T09:00:00Z', 9)], (r) => r.hits)).toEqual([0, 5, 0]);
    expect(valuesOf(moments, [row('2026-01-01T00:01:00Z', 2), row('2026-01-01T00:01:00Z', 3, 'x')], (r) => r.hits, (r) => r.reason === 'x')).toEqual([0, 3, 0]);
  });
  it('name what was called most', () => {
    expect(most([row('', 2, 'a'), row('', 3, 'b'), row('', 2, 'a')], (r) => r.reason!, 1)).toEqual(['a']);
  });
});
