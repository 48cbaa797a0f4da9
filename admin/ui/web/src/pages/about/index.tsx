import { version } from '../../lib';
import { Facts } from '../../parts/Card';
import { Page } from '../../parts/Page';

export const pages = { '/about': About };

function About() {
  return (
    <Page title="About">
      <Facts of={[['Version', version]]} />
    </Page>
  );
}
