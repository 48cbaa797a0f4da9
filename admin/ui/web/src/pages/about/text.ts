export const text = {
  title: 'About',
  versions: 'Versions',
  pages: 'These pages',
  server: 'Admin',
  description: 'Description of the REST API (OpenAPI)',
  licences: 'Licences',
  licencesHelp: 'Sluice is under the Apache License 2.0. These pages contain open-source packages under their own licences.',
  show: 'Show them',
  hide: 'Hide them',
};
