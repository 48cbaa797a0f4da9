import { ChevronDown } from 'lucide-react';
import { useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { Button, type ButtonProps } from './Button';
import css from './Disclosure.module.css';

/** A button that opens a small panel of links and buttons below it. Esc and leaving close it. */
export function Disclosure(p: { label: ReactNode; kind?: ButtonProps['kind']; dense?: boolean; children: (close: () => void) => ReactNode }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    const escape = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      setOpen(false);
      root.current?.querySelector('button')?.focus();
    };
    document.addEventListener('pointerdown', outside);
    document.addEventListener('focusin', outside);
    document.addEventListener('keydown', escape, true);
    return () => {
      document.removeEventListener('pointerdown', outside);
      document.removeEventListener('focusin', outside);
      document.removeEventListener('keydown', escape, true);
    };
  }, [open]);
  return (
    <div className={css.root} ref={root}>
      <Button kind={p.kind ?? 'quiet'} dense={p.dense} aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
        {p.label}
        <ChevronDown size={14} aria-hidden />
      </Button>
      {open && (
        <div className={css.panel} id={id}>
          {p.children(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}
