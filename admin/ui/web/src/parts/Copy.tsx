import { Check, Copy as CopyIcon } from 'lucide-react';
import { useRef, useState } from 'react';
import { t } from '../text/en';
import { Button } from './Button';
import { toast } from './toasts';

/** Copies a text; where the context is not secure, by a selection. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'sr-only';
    (document.querySelector('[role=dialog]') ?? document.body).append(area);
    area.select();
    let done = false;
    try {
      done = document.execCommand('copy');
    } catch {
      // not permitted
    }
    area.remove();
    return done;
  }
}

/** A button that copies a text. `label` names what is copied, for those who cannot see it. */
export function Copy(p: { text: string; label: string; visible?: boolean; onCopied?: () => void }) {
  const [done, setDone] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const copy = async () => {
    if (!(await copyText(p.text))) {
      toast({ text: t.secret.copyFailed, kind: 'warn' });
      return;
    }
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), 2000);
    p.onCopied?.();
  };
  return (
    <>
      <Button dense kind={p.visible ? 'plain' : 'quiet'} aria-label={`${t.copy} ${p.label}`} title={t.copy} onClick={() => void copy()}>
        {done ? <Check size={14} aria-hidden /> : <CopyIcon size={14} aria-hidden />}
        {p.visible && (done ? t.copied : t.copy)}
      </Button>
      <span className="sr-only" role="status">
        {done && t.copied}
      </span>
    </>
  );
}

/** An id or a hash: cut in the middle, copied whole. */
export function ID({ value, label = value }: { value: string; label?: string }) {
  const cut = value.length > 14 ? `${value.slice(0, 6)}…${value.slice(-4)}` : value;
  return (
    <span className="mono" title={value}>
      {cut} <Copy text={value} label={label} />
    </span>
  );
}
