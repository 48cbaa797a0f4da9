export const text = {
  title: 'Gateways',
  label: 'Gateways',
  note: (up: number, of: number, revision: string) => `${up} of ${of} serve revision ${revision}`,
  empty: {
    title: 'No gateway has reported',
    text: 'A gateway takes its configuration from this admin by a long poll, and reports with it what it serves. Those that were silent for a day are not listed.',
    command: 'sluice gateway --admin-url http://127.0.0.1:8081',
  },
  columns: { name: 'Name', state: 'State', revision: 'Revision', group: 'Group', version: 'Version', tags: 'Tags', seen: 'Heard of' },
  ok: 'serves the revision in force',
  behind: 'behind',
  silent: 'silent for two minutes',
  failed: 'not served as written',
  forget: 'Forget',
  from: 'Address',
};
