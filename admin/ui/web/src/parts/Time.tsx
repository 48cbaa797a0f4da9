import { useEffect, useState } from 'react';
import { seconds, t } from '../text/en';

const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

export type Moment = string | number | Date;

/** "3 h ago", "in 4 d 2 h". */
export function ago(at: Moment, now = Date.now()): string {
  const away = (new Date(at).getTime() - now) / 1000;
  if (Math.abs(away) < 1) return t.time.now;
  const text = Math.abs(away) >= 3600 ? seconds(Math.abs(away)) : seconds(Math.abs(away)).split(' ').slice(0, 2).join(' ');
  return away < 0 ? t.time.ago(text) : t.time.in(text);
}

/** A moment in local time; UTC on hover and focus. Go's zero time is "never". */
export function Time({ at, as = 'ago' }: { at: Moment | undefined | null; as?: 'ago' | 'full' | 'day' | 'clock' }) {
  const [, again] = useState(0);
  useEffect(() => {
    if (as !== 'ago') return;
    const tick = setInterval(() => again((n) => n + 1), 30_000);
    return () => clearInterval(tick);
  }, [as]);
  const date = at === undefined || at === null ? undefined : new Date(at);
  if (!date || Number.isNaN(date.getTime()) || date.getUTCFullYear() < 1971) return <span className="muted">{t.nothing}</span>;
  const text = as === 'ago' ? ago(date) : as === 'day' ? day.format(date) : as === 'clock' ? clock.format(date) : local.format(date);
  return (
    <time dateTime={date.toISOString()} title={`${local.format(date)}\n${date.toISOString().replace('T', ' ').slice(0, 19)} UTC`}>
      {text}
    </time>
  );
}
