import { useState, type ReactNode } from 'react';
import { t } from '../text/en';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { ErrorPanel } from './ErrorPanel';
import { TextField } from './fields';

/**
 * Asks before something that cannot be taken back. With `name`, it wants the name typed.
 * `onConfirm` may fail; the failure is shown and the dialog stays.
 */
export function Confirm(p: {
  title: string;
  /** What will happen, and what goes with it. */
  children?: ReactNode;
  name?: string;
  verb: string;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const ready = !p.name || typed.trim() === p.name;
  const confirm = async () => {
    if (!ready || busy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await p.onConfirm();
      p.onClose();
    } catch (cause) {
      setFailure(cause);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={p.title}
      onClose={p.onClose}
      actions={
        <>
          <Button onClick={p.onClose}>{t.cancel}</Button>
          <Button kind="dangerPrimary" disabled={!ready} busy={busy} onClick={() => void confirm()}>
            {p.verb}
          </Button>
        </>
      }
    >
      {p.children}
      {p.name && (
        <form onSubmit={(event) => (event.preventDefault(), void confirm())}>
          <TextField label={t.confirm.type(p.name)} value={typed} onChange={setTyped} autoComplete="off" />
        </form>
      )}
      {failure !== undefined && <ErrorPanel failure={failure} />}
    </Dialog>
  );
}
