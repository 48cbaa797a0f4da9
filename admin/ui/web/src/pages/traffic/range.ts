// Ranges of time, and usage over them.

export interface UsageRow {
  at?: string;
  api_id?: string;
  api_name?: string;
  key?: string;
  key_alias?: string;
  status?: number;
  reason?: string;
  hits: number;
  errors: number;
  mean_ms: number;
  upstream_mean_ms: number;
  p99_ms?: number;
}

/** Ranges of time, with the step that suits. */
export const ranges: { value: string; label: string; seconds: number; step: 'minute' | 'hour' | 'day' }[] = [
  { value: '1h', label: '1 hour', seconds: 3600, step: 'minute' },
  { value: '6h', label: '6 hours', seconds: 6 * 3600, step: 'minute' },
  { value: '24h', label: '24 hours', seconds: 24 * 3600, step: 'hour' },
  { value: '7d', label: '7 days', seconds: 7 * 86_400, step: 'hour' },
  { value: '30d', label: '30 days', seconds: 30 * 86_400, step: 'day' },
];

export interface Range {
  from: number;
  to: number;
  step: 'minute' | 'hour' | 'day';
  value: string;
}

/** The range that the address asks for, in unix seconds: a name, or from and to. */
export function rangeOf(url: Record<string, string | undefined>, otherwise = '1h', now = Date.now()): Range {
  const from = Math.floor(new Date(url.from ?? '').getTime() / 1000);
  const to = Math.floor(new Date(url.to ?? '').getTime() / 1000);
  if (from > 0 && to > from) return { from, to, step: to - from <= 12 * 3600 ? 'minute' : to - from <= 14 * 86_400 ? 'hour' : 'day', value: '' };
  const range = ranges.find((one) => one.value === url.range) ?? ranges.find((one) => one.value === otherwise)!;
  const end = Math.ceil(now / 60_000) * 60;
  return { from: end - range.seconds, to: end, step: range.step, value: range.value };
}

/** The ends of a range as they are now: what a page asks for that stays open. */
export function spanOf(url: Record<string, string | undefined>, otherwise = '1h', now = Date.now()): { from: number; to: number } {
  const { from, to } = rangeOf(url, otherwise, now);
  return { from, to };
}

const sizes = { minute: 60, hour: 3600, day: 86_400 };

/** The moments of a range, in unix seconds. */
export function momentsOf(range: Range): number[] {
  const size = sizes[range.step];
  const all: number[] = [];
  for (let at = Math.floor(range.from / size) * size; at < range.to; at += size) all.push(at);
  return all;
}

/** One value for each moment: of the rows that fit, summed up. */
export function valuesOf(moments: number[], rows: UsageRow[], value: (row: UsageRow) => number, fits: (row: UsageRow) => boolean = () => true): number[] {
  const sums = new Map<number, number>();
  for (const row of rows) {
    if (!fits(row)) continue;
    const at = Math.floor(new Date(row.at ?? '').getTime() / 1000);
    sums.set(at, (sums.get(at) ?? 0) + value(row));
  }
  return moments.map((at) => sums.get(at) ?? 0);
}

/** The names with most calls, in descending order. */
export function most(rows: UsageRow[], name: (row: UsageRow) => string, count: number): string[] {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(name(row), (sums.get(name(row)) ?? 0) + row.hits);
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, count).map(([one]) => one);
}
