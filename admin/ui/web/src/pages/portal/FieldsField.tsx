import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../parts/Button';
import { TextField } from '../../parts/fields';
import { t } from '../../text/en';
import css from './portal.module.css';

const text = { name: 'Name of another field', none: 'There are none.' };

/** Named texts: one field for each, and a way to add another. `known` are always drawn. */
export function FieldsField(p: { label: string; path: string; value: Record<string, string>; known?: string[]; disabled?: boolean; onChange: (value: Record<string, string>) => void }) {
  const [name, setName] = useState('');
  const names = [...new Set([...(p.known ?? []), ...Object.keys(p.value)])];
  const add = () => {
    const wanted = name.trim();
    if (!wanted) return;
    if (!names.includes(wanted)) p.onChange({ ...p.value, [wanted]: '' });
    setName('');
  };
  return (
    <fieldset className={css.form}>
      <legend className={css.legend}>{p.label}</legend>
      {names.length === 0 && p.disabled && <p className="muted">{text.none}</p>}
      {names.map((one) => (
        <div key={one} className={css.named}>
          <TextField label={one} path={`${p.path}["${one}"]`} value={p.value[one] ?? ''} disabled={p.disabled} onChange={(value) => p.onChange({ ...p.value, [one]: value })} />
          {!p.disabled && one in p.value && !p.known?.includes(one) && (
            <Button
              aria-label={t.form.remove(one)}
              onClick={() => {
                const { [one]: _, ...rest } = p.value;
                p.onChange(rest);
              }}
            >
              <X size={14} aria-hidden />
            </Button>
          )}
        </div>
      ))}
      {!p.disabled && (
        <div
          className={css.named}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            add();
          }}
        >
          <TextField label={text.name} path={p.path} value={name} onChange={setName} maxLength={64} />
          <Button disabled={!name.trim()} aria-label={`${t.form.add}: ${p.label}`} onClick={add}>
            <Plus size={14} aria-hidden /> {t.form.add}
          </Button>
        </div>
      )}
    </fieldset>
  );
}
