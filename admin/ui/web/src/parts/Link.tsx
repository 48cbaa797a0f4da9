import { useRouter, type AnyRouter } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, MouseEvent } from 'react';
import { base } from '../lib';

export interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> {
  /** A path of this UI, with its values filled in: `/apis/${encodeURIComponent(id)}`. "." is the page itself. */
  to: string;
  search?: Record<string, string | undefined>;
  replace?: boolean;
}

/**
 * A link to a page of this UI. It loads the page's code when it is pointed at. It follows
 * nothing in the router, so that a list of many is not drawn again with every address.
 */
export function Link({ to, search, replace, onClick, onPointerEnter, onFocus, ...rest }: LinkProps) {
  const router = useRouter() as AnyRouter;
  const place = { to, search: search ?? {}, replace };
  const preload = () => void router.preloadRoute(place).catch(() => {}); // the click says what is wrong
  const path = to === '.' ? router.latestLocation.pathname : to;
  return (
    <a
      {...rest}
      href={base.replace(/\/$/, '') + path + router.options.stringifySearch(place.search)}
      onClick={(event) => {
        onClick?.(event);
        if (event.defaultPrevented || isForBrowser(event)) return;
        event.preventDefault();
        void router.navigate(place);
      }}
      onPointerEnter={(event) => (onPointerEnter?.(event), preload())}
      onFocus={(event) => (onFocus?.(event), preload())}
    />
  );
}

/** A click that opens another tab or window, or saves. */
function isForBrowser(event: MouseEvent<HTMLAnchorElement>): boolean {
  const { target } = event.currentTarget;
  return event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || (target !== '' && target !== '_self');
}
