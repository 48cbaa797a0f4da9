import type { ButtonHTMLAttributes, Ref } from 'react';
import { cx } from '../lib';
import css from './Button.module.css';
import { Link, type LinkProps } from './Link';

type Kind = 'plain' | 'primary' | 'danger' | 'dangerPrimary' | 'quiet';
const classes: Record<Kind, string | undefined> = { plain: '', primary: css.primary, danger: css.danger, dangerPrimary: css.dangerPrimary, quiet: css.quiet };

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: Kind;
  dense?: boolean;
  /** Something is under way: the button cannot be pressed again. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ kind = 'plain', dense, busy, className, disabled, ...rest }: ButtonProps) {
  return <button type="button" {...rest} className={cx(css.button, classes[kind], dense && css.dense, className)} disabled={disabled || busy} aria-busy={busy || undefined} />;
}

/** A link that looks like a button, for what leads to another page. */
export function LinkButton({ kind = 'plain', dense, className, ...rest }: LinkProps & { kind?: Kind; dense?: boolean }) {
  return <Link {...rest} className={cx(css.button, classes[kind], dense && css.dense, className)} />;
}
