import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { request } from '../../api';
import { Failure } from '../../api/failure';
import { openSession, session, signIn, type Credentials } from '../../app/session';
import { useStore } from '../../lib';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { SecretField, TextField } from '../../parts/fields';
import css from './sign-in.module.css';
import { text } from './text';

/** The token of a one-time link, out of the address before anything else sees it. */
function takeToken(): string {
  const token = location.hash.slice(1);
  if (token) history.replaceState(history.state, '', location.pathname);
  return token;
}

/** Signs in: as a page, by a one-time link, or over a page whose session has ended. */
export default function SignIn({ over }: { over?: boolean }) {
  const { user } = useStore(session);
  const navigate = useNavigate();
  const [by, setBy] = useState<'password' | 'key'>('password');
  const [email, setEmail] = useState(over ? (user?.email_address ?? '') : '');
  const [secret, setSecret] = useState('');
  const [busy, setBusy] = useState(false);
  const [forgot, setForgot] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const wait = useCountdown(failure);
  const entered = useRef(false);
  const here = location.pathname;

  const start = async (credentials: Credentials) => {
    setBusy(true);
    setFailure(undefined);
    try {
      await signIn(credentials);
      if (/\/(enter|sign-in)$/.test(here)) void navigate({ to: 'enter' in credentials ? '/account' : '/', replace: true });
    } catch (cause) {
      setFailure(cause instanceof Failure ? cause : new Failure(0, String(cause), 'POST', '/api/session'));
      setSecret('');
    } finally {
      setBusy(false);
    }
  };

  useEffect(() => {
    document.title = `${text.title} · Sluice`;
    if (over || entered.current) return;
    entered.current = true;
    if (!here.endsWith('/enter')) return;
    const token = takeToken();
    if (token) void start({ enter: token });
    else void openSession().then(() => session.get().state === 'in' && void navigate({ to: '/', replace: true }));
  }, []);

  if (forgot) return <Forgot email={email} onBack={() => setForgot(false)} />;
  const form = (
    <form
      className={over ? css.form : css.card}
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy && wait === 0) void start(by === 'password' ? { email, password: secret } : { access_key: secret });
      }}
    >
      {over ? <p className="muted">{text.againHelp}</p> : <h1>{text.title}</h1>}
      {by === 'password' && <TextField label={text.email} type="email" name="email" autoComplete="username" value={email} onChange={setEmail} required autoFocus={email === ''} />}
      <SecretField
        key={by}
        label={by === 'password' ? text.password : text.key}
        name="password"
        autoComplete={by === 'password' ? 'current-password' : 'off'}
        value={secret}
        onChange={setSecret}
        required
        autoFocus={by === 'key' || email !== ''}
      />
      <div role="alert" className={css.alert}>
        {failure && <p>{failure.message}</p>}
        {wait > 0 && <p>{text.wait(wait)}</p>}
      </div>
      <Button kind="primary" type="submit" busy={busy} disabled={wait > 0}>
        {busy ? text.busy : text.submit}
      </Button>
      <Button kind="quiet" onClick={() => (setBy(by === 'password' ? 'key' : 'password'), setSecret(''), setFailure(undefined))}>
        {by === 'password' ? text.byKey : text.byPassword}
      </Button>
      {!over && (
        <Button kind="quiet" onClick={() => setForgot(true)}>
          {text.forgot}
        </Button>
      )}
      <p className="muted">{text.lost}</p>
    </form>
  );
  // A dialog of the page may be open: this one lies over it, and takes the focus from it.
  if (over) {
    return (
      <Dialog firm title={text.again} onClose={() => {}}>
        {form}
      </Dialog>
    );
  }
  return (
    <main id="main" className={css.page}>
      {form}
    </main>
  );
}

/** Asks for a letter with a link that signs in once. */
function Forgot({ email: known, onBack }: { email: string; onBack: () => void }) {
  const [email, setEmail] = useState(known);
  const [busy, setBusy] = useState(false);
  const [sent, setSent] = useState('');
  const [failure, setFailure] = useState<Failure>();
  const wait = useCountdown(failure);
  const send = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const answer = await request<{ Message: string }>('POST', '/api/users/forgot', { body: { email_address: email } });
      setSent(answer.Message);
    } catch (cause) {
      setFailure(cause instanceof Failure ? cause : new Failure(0, String(cause), 'POST', '/api/users/forgot'));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main id="main" className={css.page}>
      <form
        className={css.card}
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy && wait === 0) void send();
        }}
      >
        <h1>{text.forgotTitle}</h1>
        <p className="muted">{text.forgotHelp}</p>
        <TextField label={text.email} type="email" name="email" autoComplete="username" value={email} onChange={setEmail} required autoFocus />
        <div role="alert" className={css.alert}>
          {failure && <p>{failure.message}</p>}
          {wait > 0 && <p>{text.wait(wait)}</p>}
        </div>
        <p role="status">{sent && `${sent}.`}</p>
        <Button kind="primary" type="submit" busy={busy} disabled={wait > 0}>
          {busy ? text.sending : text.send}
        </Button>
        <Button kind="quiet" onClick={onBack}>
          {text.back}
        </Button>
      </form>
    </main>
  );
}

/** Seconds that are left of Retry-After. */
function useCountdown(failure: Failure | undefined): number {
  const [, again] = useState(0);
  const until = failure && failure.retryAfter > 0 ? failure.at + failure.retryAfter * 1000 : 0;
  useEffect(() => {
    if (!until) return;
    const tick = setInterval(() => {
      again((n) => n + 1);
      if (Date.now() >= until) clearInterval(tick);
    }, 500);
    return () => clearInterval(tick);
  }, [until]);
  return Math.max(0, Math.ceil((until - Date.now()) / 1000));
}
