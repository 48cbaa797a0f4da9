import { Dialog as Base } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import type { ReactNode, RefObject } from 'react';
import { cx } from '../lib';
import { t } from '../text/en';
import { Button } from './Button';
import css from './Dialog.module.css';

/**
 * A dialog over the page. It closes by Esc, by a click beside it and by its cross, unless
 * it is `firm`: then only what is in it closes it.
 */
export function Dialog(p: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** Buttons at the end. */
  actions?: ReactNode;
  firm?: boolean;
  wide?: boolean;
  /** What has the focus first. */
  focus?: RefObject<HTMLElement | null>;
  /** What has the focus after it has closed: false, nothing new; undefined, what had it before. */
  back?: () => HTMLElement | false | undefined;
  /** Hides the title from sight. */
  plain?: boolean;
}) {
  return (
    <Base.Root
      open
      disablePointerDismissal={p.firm}
      onOpenChange={(open, details) => {
        if (open) return;
        if (p.firm) details.cancel();
        else p.onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className={css.backdrop} />
        <Base.Popup className={cx(css.popup, p.wide && css.wide)} initialFocus={p.focus} finalFocus={p.back && (() => p.back?.() ?? true)} data-modal>
          <div className={p.plain ? 'sr-only' : css.head}>
            <Base.Title className={css.title}>{p.title}</Base.Title>
            {!p.firm && !p.plain && (
              <Button dense kind="quiet" aria-label={t.close} onClick={p.onClose}>
                <X size={16} aria-hidden />
              </Button>
            )}
          </div>
          <div className={css.body}>{p.children}</div>
          {p.actions && <div className={css.foot}>{p.actions}</div>}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
