import { plural } from '../../text/en';

export const text = {
  title: 'Sign in to Sluice',
  again: 'Your session has ended',
  againHelp: 'Sign in to go on. What is on the page stays as it is.',
  email: 'Email address',
  password: 'Password',
  key: 'Access key',
  submit: 'Sign in',
  busy: 'Signing in…',
  byKey: 'Sign in with an access key',
  byPassword: 'Sign in with a password',
  wait: (seconds: number) => `Too many attempts. Try again in ${plural(seconds, 'second', 'seconds')}.`,
  lost: 'No password yet? An admin can send you a link. On the server, "sluice user enter" prints one.',
  forgot: 'Forgot your password?',
  forgotTitle: 'A new password',
  forgotHelp: 'You get a letter with a link that signs you in once, within an hour. Then choose another password.',
  send: 'Send the letter',
  sending: 'Sending…',
  back: 'Back to sign-in',
};
