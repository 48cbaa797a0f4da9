import { Page } from '../../parts/Page';

export const pages = { '/': Home };

function Home() {
  return <Page title="Home" />;
}
