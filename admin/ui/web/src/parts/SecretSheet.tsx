import { useBlocker } from '@tanstack/react-router';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import { t } from '../text/en';
import { Button } from './Button';
import { copyText } from './Copy';
import { Dialog } from './Dialog';
import { SwitchField } from './fields';
import css from './SecretSheet.module.css';

/**
 * Shows a secret this once. Neither Esc nor a click beside nor the back button closes it,
 * until it was copied, saved or printed, or "It is stored" is ticked. The secret must be
 * in the state of one component only: never in a query, the address or storage.
 */
export function SecretSheet(p: {
  /** Key for ada@acme.com */
  title: string;
  secret: string;
  /** Name of the file that Save writes, without an ending. */
  file?: string;
  /** Printed below the secret: where the portal is. */
  address?: string;
  children?: ReactNode;
  onClose: () => void;
}) {
  const [stored, setStored] = useState(false);
  const [message, setMessage] = useState('');
  const text = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (stored) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [stored]);
  useBlocker({ shouldBlockFn: () => !stored && !confirm(t.secret.leave), enableBeforeUnload: false });

  const copy = async () => {
    if (await copyText(p.secret)) {
      setStored(true);
      setMessage(t.copied);
      return;
    }
    getSelection()?.selectAllChildren(text.current!);
    setMessage(t.secret.copyFailed);
  };
  const save = () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([p.secret + '\n'], { type: 'text/plain' }));
    link.download = `${p.file ?? 'secret'}.txt`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    setStored(true);
  };
  const print_ = () => {
    document.body.dataset.printing = '';
    print();
    delete document.body.dataset.printing;
    setStored(true);
  };
  return (
    <Dialog
      firm
      title={p.title}
      onClose={p.onClose}
      actions={
        <Button kind="primary" disabled={!stored} onClick={p.onClose}>
          {t.close}
        </Button>
      }
    >
      <p>{t.secret.once}</p>
      <p className={css.secret} ref={text} tabIndex={0} data-secret>
        {p.secret}
      </p>
      <div className="row">
        <Button onClick={() => void copy()}>{t.copy}</Button>
        <Button onClick={save}>{t.secret.save}</Button>
        <Button onClick={print_}>{t.secret.print}</Button>
        <span role="status">{message}</span>
      </div>
      {p.children}
      <SwitchField label={t.secret.stored} value={stored} onChange={setStored} />
      {createPortal(
        <div className={`print-only ${css.print}`} aria-hidden="true">
          <h1>{p.title}</h1>
          <p>
            <code>{p.secret}</code>
          </p>
          <p>
            {t.secret.date} {new Date().toISOString().slice(0, 10)}
          </p>
          {p.address && <p>{p.address}</p>}
        </div>,
        document.body,
      )}
    </Dialog>
  );
}
