export const text = {
  title: 'Certificates',
  label: 'Certificates',
  add: 'Add a certificate',
  empty: {
    title: 'No certificate is stored',
    text: 'Definitions name certificates by their ids: to let clients in, to be trusted as an authority, or to serve a domain. Private keys are stored encrypted and never shown.',
    command: 'sluice cert add server.pem --key server.key',
  },
  columns: { subject: 'Subject', names: 'Names', use: 'Holds', until: 'Valid until', id: 'Id' },
  key: 'private key',
  authority: 'authority',
  plain: 'certificate',
  ended: 'has ended',
  soon: 'ends soon',
  remove: 'Delete',
  form: {
    file: 'File in PEM',
    pem: 'Certificate in PEM',
    help: 'The certificate, those that lead to its authority, and its private key if gateways are to show it. Nothing of it is kept in this browser.',
    verb: 'Add',
  },
  added: 'Certificate added',
};
