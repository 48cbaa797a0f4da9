export const text = {
  title: 'Secrets',
  things: ['secret', 'secrets'] as const,
  set: 'Set a secret',
  empty: {
    title: 'No secret is stored',
    text: 'Definitions refer to a secret by {secret:NAME} where they need a credential, such as that of an upstream. Values are stored encrypted and never shown.',
  },
  columns: { name: 'Name', used: 'Used by', changed: 'Changed' },
  unused: 'no API',
  remove: 'Delete',
  form: {
    name: 'Name',
    nameHelp: 'At most 128 letters, digits, "-", "_" and ".". A name that is there gets the new value.',
    value: 'Value',
    valueHelp: '4 to 8192 bytes. Gateways use it at once. It is not kept in this browser.',
    verb: 'Set',
  },
  done: (name: string) => `Secret ${name} was set`,
};
