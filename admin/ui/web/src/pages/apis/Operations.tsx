import type { ReactNode } from 'react';
import { Card } from '../../parts/Card';
import { ID } from '../../parts/Copy';
import type { Draft } from '../../parts/draft';
import { text as t } from './text';
import css from './apis.module.css';

/** Operations that clients name by their hash. */
export function OperationsTab({ draft, fields }: { draft: Draft; fields: ReactNode }) {
  const stored = Object.entries(draft.get<Record<string, string>>('graphql.trusted_documents.documents') ?? {});
  return (
    <>
      {fields}
      <Card title={t.operations.title}>
        {stored.length === 0 && <p className="muted">{t.operations.none}</p>}
        {stored.slice(0, 500).map(([hash, operation]) => (
          <section key={hash} aria-label={hash}>
            <ID value={hash} />
            <pre className={css.operation}>{operation}</pre>
          </section>
        ))}
      </Card>
    </>
  );
}
