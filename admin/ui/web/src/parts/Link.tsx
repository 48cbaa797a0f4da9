import { Link as RouterLink } from '@tanstack/react-router';
import type { AnchorHTMLAttributes } from 'react';

export interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> {
  /** A path of this UI, with its values filled in: `/apis/${encodeURIComponent(id)}`. */
  to: string;
  search?: Record<string, string | undefined>;
  replace?: boolean;
}

/** A link to a page of this UI. It loads the page's code when it is pointed at. */
export function Link({ to, search, ...rest }: LinkProps) {
  return <RouterLink to={to as never} search={(search ?? {}) as never} activeProps={{}} activeOptions={{ exact: true, includeSearch: false }} {...(rest as object)} />;
}
