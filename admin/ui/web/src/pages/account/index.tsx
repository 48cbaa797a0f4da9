import { Page } from '../../parts/Page';

export const pages = { '/account': Account };

function Account() {
  return <Page title="Account" />;
}
