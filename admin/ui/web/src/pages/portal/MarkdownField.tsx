import { TextAreaField, type Common } from '../../parts/fields';
import { Markdown } from '../../parts/Markdown';
import css from './portal.module.css';

/** Markdown, with what it comes to beside it. */
export function MarkdownField(p: Common & { value: string; onChange: (value: string) => void; rows?: number; preview: string; empty: string }) {
  const { preview, empty, ...field } = p;
  return (
    <div className={css.markdown}>
      <TextAreaField {...field} rows={p.rows ?? 10} />
      <section className={css.preview} aria-label={`${p.label}: ${preview}`}>
        <h3 className="muted">{preview}</h3>
        {p.value.trim() ? <Markdown text={p.value} /> : <p className="muted">{empty}</p>}
      </section>
    </div>
  );
}
