// Choosing something by name where the server searches: never only among what is loaded.
import { X } from 'lucide-react';
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import { useRead } from '../api/query';
import { cx } from '../lib';
import { t } from '../text/en';
import { Button } from './Button';
import { Field, type Common, type Control } from './fields';
import fields from './fields.module.css';
import css from './Picker.module.css';

export interface Choice {
  value: string;
  label: string;
  /** Beside the label: an id, a path. */
  note?: string;
}

interface Source {
  /** Begins the key of the query: ['policies', 'pick']. */
  queryKey: readonly unknown[];
  search: (q: string, signal: AbortSignal) => Promise<Choice[]>;
  placeholder?: string;
}

/** One of what the server finds; '' is none. */
export function PickerField(p: Common & Source & { value: string; onChange: (value: string) => void }) {
  const { label, help, path, required, disabled, ...rest } = p;
  return <Field {...{ label, help, path, required, disabled }}>{(control) => <Combobox {...rest} control={control} label={label} />}</Field>;
}

/** Several of what the server finds, each once. */
export function PickerListField(p: Common & Source & { value: string[]; onChange: (value: string[]) => void }) {
  const { label, help, path, required, disabled, value, onChange, ...source } = p;
  return (
    <Field {...{ label, help, path, required, disabled }} below>
      {(control) => (
        <div className={css.many}>
          {value.length > 0 && (
            <ul className={css.chips}>
              {value.map((id) => (
                <li key={id} className={css.chip}>
                  <Label {...source} value={id} />
                  <Button dense kind="quiet" aria-label={t.form.remove(id)} disabled={disabled} onClick={() => onChange(value.filter((other) => other !== id))}>
                    <X size={14} aria-hidden />
                  </Button>
                </li>
              ))}
            </ul>
          )}
          <Combobox {...source} control={control} label={label} value="" onChange={(id) => id && !value.includes(id) && onChange([...value, id])} />
        </div>
      )}
    </Field>
  );
}

function useLabel(source: Source, value: string): string {
  const query = useRead([...source.queryKey, 'label', value], (signal) => source.search(value, signal), { enabled: value !== '', staleTime: 60_000 });
  return query.data?.find((one) => one.value === value)?.label ?? value;
}

function Label(p: Source & { value: string }) {
  return <span>{useLabel(p, p.value)}</span>;
}

function Combobox(p: Source & { control: Control; label: string; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState<string>(); // undefined: nothing is being typed
  const [asked, setAsked] = useState('');
  const [at, setAt] = useState(0);
  const list = useId();
  const items = useRef<HTMLUListElement>(null);
  const chosen = useLabel(p, p.value);
  const open = text !== undefined;
  useEffect(() => {
    const wait = setTimeout(() => setAsked(text ?? ''), text ? 150 : 0);
    return () => clearTimeout(wait);
  }, [text]);
  const query = useRead([...p.queryKey, asked], (signal) => p.search(asked, signal), { enabled: open, keep: true });
  const found = query.data ?? [];
  const current = found[Math.min(at, found.length - 1)];
  useEffect(() => {
    items.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [at, found.length]);

  const close = () => (setText(undefined), setAt(0));
  const choose = (value: string) => {
    p.onChange(value);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!open) setText('');
      else setAt((now) => Math.max(0, Math.min(found.length - 1, now + (event.key === 'ArrowDown' ? 1 : -1))));
    } else if (event.key === 'Enter' && open) {
      event.preventDefault(); // the form is not sent
      if (current) choose(current.value);
    } else if (event.key === 'Escape' && open) {
      event.stopPropagation(); // a dialog stays
      event.nativeEvent.stopImmediatePropagation();
      close();
    }
  };
  return (
    <div className={css.box}>
      <input
        {...p.control}
        className={fields.control}
        role="combobox"
        aria-expanded={open}
        aria-controls={open ? list : undefined}
        aria-autocomplete="list"
        aria-activedescendant={open && current ? `${list}-${current.value}` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder={p.placeholder ?? t.pick.search}
        value={text ?? (p.value && chosen)}
        onChange={(event) => (setText(event.target.value), setAt(0))}
        onFocus={(event) => event.target.select()}
        onClick={() => open || setText('')}
        onBlur={close}
        onKeyDown={onKeyDown}
      />
      {p.value && !p.control.disabled && !p.control.required && (
        <Button dense kind="quiet" className={css.clear} aria-label={t.form.remove(chosen)} onClick={() => choose('')}>
          <X size={14} aria-hidden />
        </Button>
      )}
      {open && (
        <ul className={css.list} id={list} role="listbox" aria-label={p.label} ref={items}>
          {found.map((one, index) => (
            <li
              key={one.value}
              id={`${list}-${one.value}`}
              role="option"
              aria-selected={one === current}
              className={cx(css.option, one === current && css.current)}
              onPointerMove={() => setAt(index)}
              onPointerDown={(event) => {
                event.preventDefault(); // the field keeps the focus
                choose(one.value);
              }}
            >
              <span>{one.label}</span>
              {one.note && <span className="muted">{one.note}</span>}
            </li>
          ))}
          {found.length === 0 && (
            <li className={css.none} role="option" aria-selected={false} aria-disabled>
              {query.isError ? (query.error as Error).message : query.isPending ? t.loading : t.list.noMatch}
            </li>
          )}
        </ul>
      )}
    </div>
  );
}
