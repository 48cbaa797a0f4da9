import { AlertTriangle, Check, CircleX, Info } from 'lucide-react';
import type { ReactNode } from 'react';
import { cx } from '../lib';
import css from './Badge.module.css';

const icons = { ok: Check, warn: AlertTriangle, danger: CircleX, info: Info, plain: undefined };

/** A state in a word, with an icon: never by colour alone. */
export function Badge({ kind = 'plain', children }: { kind?: 'plain' | 'ok' | 'warn' | 'danger' | 'info'; children: ReactNode }) {
  const Icon = icons[kind];
  return (
    <span className={cx(css.badge, css[kind])}>
      {Icon && <Icon size={12} aria-hidden />}
      {children}
    </span>
  );
}
