import { ErrorPanel } from '../parts/ErrorPanel';
import { Link } from '../parts/Link';
import { Page } from '../parts/Page';
import { t } from '../text/en';

export function Missing() {
  return (
    <Page title={t.missing.title}>
      <p>{t.missing.text}</p>
      <p>
        <Link to="/">{t.missing.home}</Link>
      </p>
    </Page>
  );
}

/** What is drawn in place of a page that failed. */
export function PageFailure({ error }: { error: unknown }) {
  return (
    <Page title={t.failure.page}>
      <ErrorPanel failure={error} retry={() => location.reload()} />
    </Page>
  );
}
