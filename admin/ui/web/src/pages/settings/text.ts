import { plural } from '../../text/en';

export const text = {
  title: 'Settings',
  tabs: 'Settings and checks',
  settings: 'Settings',
  checks: 'Checks',
  label: 'Effective settings',
  search: 'Part of a name, a value or an origin',
  origin: 'Set by',
  origins: { set: 'a file, a variable or a flag', default: 'default' } as Record<string, string>,
  columns: { key: 'Setting', value: 'Value', origin: 'Set by' },
  empty: { title: 'No settings are shown', text: 'This admin was started without its configuration.', command: 'sluice config show' },
  note: 'Settings are those of the process that answers. They are changed in its configuration, not here; secrets are shown as ***.',
  doctor: {
    label: 'Checks of the installation',
    again: 'Check again',
    summary: (fail: number, warn: number) =>
      fail + warn === 0 ? 'Everything is in order.' : [fail && plural(fail, 'failure', 'failures'), warn && plural(warn, 'warning', 'warnings')].filter(Boolean).join(', '),
    columns: { state: 'State', check: 'Check', detail: 'Found', remedy: 'What to do' },
    states: { ok: 'ok', warn: 'warning', fail: 'failure' } as Record<string, string>,
    running: 'The servers are being asked; this takes a few seconds.',
  },
};
