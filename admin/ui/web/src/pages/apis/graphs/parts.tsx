// Parts of the pages of supergraphs and data graphs.
import { ChevronRight, Plus, X } from 'lucide-react';
import type { ReactNode } from 'react';
import { Badge } from '../../../parts/Badge';
import { Button } from '../../../parts/Button';
import { TextField, useProblemsAt } from '../../../parts/fields';
import { useURLState } from '../../../parts/urlState';
import { t as all } from '../../../text/en';
import { text as t } from './text';
import css from './graphs.module.css';

/** Which entry of a list is open: the one that the address names, or the one with the field that it names. */
export function useOpened(path: string): [number | undefined, (index: number | undefined) => void] {
  const [url, setURL] = useURLState();
  const named = url.open ?? (url.at?.startsWith(`${path}[`) ? url.at.slice(path.length + 1).split(']')[0] : undefined);
  return [named && /^\d+$/.test(named) ? Number(named) : undefined, (index) => setURL({ open: index === undefined ? undefined : String(index), at: undefined })];
}

/** An entry of a list, whose fields are shown when it is opened. */
export function Entry(p: { path: string; name: string; note?: ReactNode; problems?: number; open: boolean; onToggle: () => void; onRemove?: () => void; children: ReactNode }) {
  const here = useProblemsAt(p.path, true).length;
  const problems = Math.max(here, p.problems ?? 0);
  return (
    <li className={css.member}>
      <div className={css.head}>
        <button type="button" className={css.opener} data-path={p.path} aria-expanded={p.open} onClick={p.onToggle}>
          <ChevronRight size={16} aria-hidden />
          <span>
            <strong>{p.name}</strong> <span className="muted">{p.note}</span>
          </span>
        </button>
        {problems > 0 && <Badge kind="danger">{all.form.problems(problems)}</Badge>}
        {p.onRemove && (
          <Button dense kind="quiet" aria-label={t.removeNamed(p.name)} onClick={p.onRemove}>
            {t.remove}
          </Button>
        )}
      </div>
      {p.open && <div className={css.inside}>{p.children}</div>}
    </li>
  );
}

/** What the server says of a place that is no field. */
export function ProblemsAt({ path }: { path: string }) {
  const problems = useProblemsAt(path);
  return (
    <div className={css.at} data-path={path} tabIndex={-1} role="status">
      {problems.map((one, n) => (
        <p key={n} className={css.wrong}>
          {one.message}
        </p>
      ))}
    </div>
  );
}

/** Names with values, in order; the members are called `names`. */
export function PairsField<N extends string, V extends string>(p: {
  label: string;
  help: string;
  path: string;
  names: { name: N; value: V };
  disabled: boolean;
  value: Partial<Record<N | V, string>>[];
  onChange: (value: Partial<Record<N | V, string>>[]) => void;
}) {
  const { names, value, path } = p;
  const put = (at: number, member: N | V, text: string) => p.onChange(value.with(at, { ...value[at], [member]: text } as Partial<Record<N | V, string>>));
  return (
    <fieldset className={css.pairs}>
      <legend>{p.label}</legend>
      <p className="muted">{p.help}</p>
      {value.map((one, at) => (
        <div key={at} className={css.pair}>
          <TextField label={t.pairs.name(at + 1)} path={`${path}[${at}].${names.name}`} disabled={p.disabled} code value={one[names.name] ?? ''} onChange={(text) => put(at, names.name, text)} />
          <TextField label={t.pairs.value(at + 1)} path={`${path}[${at}].${names.value}`} disabled={p.disabled} code value={one[names.value] ?? ''} onChange={(text) => put(at, names.value, text)} />
          <Button aria-label={t.removeNamed(one[names.name] || `${p.label} ${at + 1}`)} disabled={p.disabled} onClick={() => p.onChange(value.toSpliced(at, 1))}>
            <X size={14} aria-hidden />
          </Button>
        </div>
      ))}
      {!p.disabled && (
        <div>
          <Button dense data-path={path} aria-label={`${t.pairs.add}: ${p.label}`} onClick={() => p.onChange([...value, { [names.name]: '', [names.value]: '' } as Partial<Record<N | V, string>>])}>
            <Plus size={14} aria-hidden /> {t.pairs.add}
          </Button>
        </div>
      )}
    </fieldset>
  );
}
