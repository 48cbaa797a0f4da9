import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { request, useRead, useWrite } from '../../api';
import { watchRevision } from '../../app/pulse';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { ErrorPanel } from '../../parts/ErrorPanel';
import { TextField } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { toast } from '../../parts/toasts';
import { ConcernedKeys } from './Concerned';
import { Differences } from './Differences';
import { readDiff } from './model';
import { text } from './text';

/** Asks for a reason, shows all that changes, and rolls back. */
export function Rollback({ to, from, onClose }: { to: number; /** The revision in force. */ from: number; onClose: () => void }) {
  const [reason, setReason] = useState('');
  const navigate = useNavigate();
  const diff = useRead(['changes', 'diff', to, from], (signal) => readDiff(to, from, signal));
  const write = useWrite(() => request<{ Meta: number }>('POST', `/api/config/revisions/${to}/rollback`, { body: { reason }, once: true }), {
    changes: [['changes']],
    done: (answer) => {
      watchRevision(answer.Meta);
      toast({ kind: 'ok', text: text.rollback.done(answer.Meta) });
      onClose();
      void navigate({ to: `/changes/${answer.Meta}` as never });
    },
  });
  const run = () => {
    if (!write.isPending) write.mutate(undefined);
  };
  return (
    <Dialog
      title={text.rollback.title(to)}
      onClose={onClose}
      wide
      actions={
        <Button kind="dangerPrimary" busy={write.isPending} onClick={run}>
          {text.rollback.verb}
        </Button>
      }
    >
      <div
        className="stack"
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
          event.preventDefault();
          run();
        }}
      >
        <TextField label={text.rollback.reason} value={reason} onChange={setReason} help={text.rollback.hint} autoComplete="off" />
        <p>{text.rollback.text}</p>
        <ConcernedKeys revision={to} against={from} />
        <Loaded query={diff}>{(data) => <Differences diff={data} />}</Loaded>
        {write.isError && <ErrorPanel failure={write.error} />}
      </div>
    </Dialog>
  );
}
