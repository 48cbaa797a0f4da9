import { CodeEditor } from '../../parts/code';
import { Card } from '../../parts/Card';
import type { Draft } from '../../parts/draft';
import { useOffsetInAddress } from '../../parts/fieldInAddress';
import { text as t } from './text';

/** The definition as text: a view of the same draft as the forms. */
export function RawTab({ draft, may }: { draft: Draft; may: boolean }) {
  const goTo = useOffsetInAddress(draft.text);
  return (
    <Card title={t.tabs.raw}>
      <p className="muted">{t.raw.help}</p>
      <CodeEditor label={t.raw.label} language="json" value={draft.text} goTo={goTo} onChange={may ? draft.setText : undefined} readOnly={!may} problems={draft.problems} lines={32} />
    </Card>
  );
}
