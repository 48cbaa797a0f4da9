// Form fields. Each shows its label, a help text and the problems that the server found
// at `path`, which it is also found by when the link of a problem is followed.
import { CircleX, Plus, X } from 'lucide-react';
import { createContext, useContext, useEffect, useId, useRef, useState, type InputHTMLAttributes, type ReactNode } from 'react';
import type { Problem } from '../api/failure';
import { cx } from '../lib';
import { t } from '../text/en';
import { Button } from './Button';
import css from './fields.module.css';

const ProblemsContext = createContext<Problem[]>([]);

/** Gives the fields below the problems that the server found. */
export function FieldProblems({ problems, children }: { problems: Problem[]; children: ReactNode }) {
  return <ProblemsContext value={problems}>{children}</ProblemsContext>;
}

/** The problems at a path; with `below`, those of its members too. */
export function useProblemsAt(path: string | undefined, below = false): Problem[] {
  const all = useContext(ProblemsContext);
  if (!path) return [];
  return all.filter((one) => one.path === path || (below && (one.path.startsWith(`${path}.`) || one.path.startsWith(`${path}[`))));
}

export interface Common {
  label: string;
  help?: ReactNode;
  /** Where the value stands in what is sent: "proxy.target_url". */
  path?: string;
  required?: boolean;
  disabled?: boolean;
}

export interface Control {
  id: string;
  'aria-describedby'?: string;
  'aria-invalid'?: true;
  'data-path'?: string;
  disabled?: boolean;
  required?: boolean;
}

/** The frame of a field, for controls that are not below. */
export function Field(p: Common & { unit?: string; below?: boolean; as?: 'group'; children: (control: Control) => ReactNode }) {
  const id = useId();
  const problems = useProblemsAt(p.path, p.below);
  const described = [p.help ? `${id}-help` : '', problems.length > 0 ? `${id}-problem` : ''].filter(Boolean).join(' ');
  const control: Control = {
    id,
    'aria-describedby': described || undefined,
    'aria-invalid': problems.length > 0 || undefined,
    'data-path': p.path,
    disabled: p.disabled,
    required: p.required,
  };
  const label = (
    <>
      {p.label} {p.required && <span>({t.form.required})</span>}
    </>
  );
  const Box = p.as === 'group' ? 'fieldset' : 'div';
  return (
    <Box className={css.field} aria-describedby={p.as === 'group' ? control['aria-describedby'] : undefined}>
      {p.as === 'group' ? (
        <legend className={css.label}>{label}</legend>
      ) : (
        <label className={css.label} htmlFor={id}>
          {label}
        </label>
      )}
      {p.unit ? (
        <div className={css.withUnit}>
          {p.children(control)}
          <span className="muted">{p.unit}</span>
        </div>
      ) : (
        p.children(control)
      )}
      {p.help && (
        <p className={css.help} id={`${id}-help`}>
          {p.help}
        </p>
      )}
      <ProblemLines id={`${id}-problem`} problems={problems} />
    </Box>
  );
}

function ProblemLines({ id, problems }: { id: string; problems: Problem[] }) {
  if (problems.length === 0) return null;
  return (
    <div id={id}>
      {problems.map((problem, at) => (
        <p key={at} className={css.problem}>
          <CircleX size={13} aria-hidden />
          {problem.message}
        </p>
      ))}
    </div>
  );
}

type Native = Pick<InputHTMLAttributes<HTMLInputElement>, 'autoComplete' | 'placeholder' | 'autoFocus' | 'spellCheck' | 'inputMode' | 'maxLength' | 'readOnly' | 'name'>;

export function TextField(p: Common & Native & { value: string; onChange: (value: string) => void; type?: 'text' | 'email' | 'url' | 'search'; code?: boolean }) {
  const { label, help, path, required, disabled, value, onChange, code, type = 'text', ...native } = p;
  return (
    <Field {...{ label, help, path, required, disabled }}>
      {(control) => <input {...control} {...native} className={cx(css.control, code && css.code)} type={type} value={value} onChange={(event) => onChange(event.target.value)} />}
    </Field>
  );
}

/** A password or another secret: hidden, with a button that shows it. */
export function SecretField(p: Common & Native & { value: string; onChange: (value: string) => void }) {
  const [shown, setShown] = useState(false);
  const { label, help, path, required, disabled, value, onChange, ...native } = p;
  return (
    <Field {...{ label, help, path, required, disabled }}>
      {(control) => (
        <div className={css.entry}>
          <input {...control} {...native} className={css.control} type={shown ? 'text' : 'password'} value={value} onChange={(event) => onChange(event.target.value)} />
          <Button aria-pressed={shown} aria-label={`${t.form.show} ${label}`} onClick={() => setShown(!shown)}>
            {shown ? t.form.hide : t.form.show}
          </Button>
        </div>
      )}
    </Field>
  );
}

/** A number; undefined is "not given". Text that is no number stays and is not passed on. */
export function NumberField(p: Common & { value: number | undefined; onChange: (value: number | undefined) => void; unit?: string; min?: number; max?: number; step?: number | 'any'; placeholder?: string }) {
  const { label, help, path, required, disabled, unit, value, onChange, ...native } = p;
  const [text, setText] = useState<string>();
  return (
    <Field {...{ label, help, path, required, disabled, unit }}>
      {(control) => (
        <input
          {...control}
          {...native}
          className={css.control}
          type="number"
          value={text ?? value ?? ''}
          onChange={(event) => {
            setText(event.target.value);
            if (event.target.value === '') onChange(undefined);
            else if (Number.isFinite(event.target.valueAsNumber)) onChange(event.target.valueAsNumber);
          }}
          onBlur={() => setText(undefined)}
        />
      )}
    </Field>
  );
}

/** A moment in unix seconds, typed in the reader's time zone; undefined is "not given". */
export function MomentField(p: Common & { value: number | undefined; onChange: (value: number | undefined) => void }) {
  const { value, onChange } = p;
  const input = useRef<HTMLInputElement>(null);
  const said = useRef(value);
  useEffect(() => {
    // What is half typed has no value: only another one from outside is written into it.
    if (value !== said.current && input.current) input.current.value = localOf(value);
    said.current = value;
  }, [value]);
  return (
    <Field {...p} help={value === undefined ? p.help : <>{p.help} <span className="mono">{new Date(value * 1000).toISOString().replace('.000Z', 'Z')}</span></>}>
      {(control) => (
        <input
          {...control}
          ref={input}
          className={css.control}
          type="datetime-local"
          step={value !== undefined && value % 60 !== 0 ? 1 : 60}
          defaultValue={localOf(value)}
          onChange={({ target }) => {
            if (target.value === '' && target.validity.badInput) return;
            said.current = target.value === '' ? undefined : Math.floor(new Date(target.value).getTime() / 1000);
            onChange(said.current);
          }}
        />
      )}
    </Field>
  );
}

/** A moment as a field of type datetime-local holds it. */
function localOf(seconds: number | undefined): string {
  if (seconds === undefined) return '';
  const at = new Date(seconds * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, seconds % 60 === 0 ? 16 : 19);
}

export interface Option {
  value: string;
  label: string;
  disabled?: boolean;
}

export function SelectField(p: Common & { value: string; onChange: (value: string) => void; options: Option[] }) {
  const { label, help, path, required, disabled, value, onChange, options } = p;
  return (
    <Field {...{ label, help, path, required, disabled }}>
      {(control) => (
        <select {...control} className={css.control} value={value} onChange={(event) => onChange(event.target.value)}>
          {!options.some((one) => one.value === value) && <option value={value}>{value}</option>}
          {options.map((one) => (
            <option key={one.value} value={one.value} disabled={one.disabled}>
              {one.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function TextAreaField(p: Common & { value: string; onChange: (value: string) => void; rows?: number; code?: boolean; placeholder?: string; maxLength?: number }) {
  const { label, help, path, required, disabled, value, onChange, code, ...native } = p;
  return (
    <Field {...{ label, help, path, required, disabled }}>
      {(control) => <textarea {...control} {...native} rows={p.rows ?? 4} className={cx(css.control, code && css.code)} value={value} onChange={(event) => onChange(event.target.value)} spellCheck={!code} />}
    </Field>
  );
}

/** On or off. */
export function SwitchField(p: Common & { value: boolean; onChange: (value: boolean) => void }) {
  const id = useId();
  const problems = useProblemsAt(p.path);
  return (
    <div className={css.field}>
      <div className={css.switch}>
        <input
          id={id}
          type="checkbox"
          checked={p.value}
          disabled={p.disabled}
          data-path={p.path}
          aria-describedby={p.help ? `${id}-help` : undefined}
          aria-invalid={problems.length > 0 || undefined}
          onChange={(event) => p.onChange(event.target.checked)}
        />
        <div>
          <label htmlFor={id}>{p.label}</label>
          {p.help && (
            <p className={css.help} id={`${id}-help`}>
              {p.help}
            </p>
          )}
        </div>
      </div>
      <ProblemLines id={`${id}-problem`} problems={problems} />
    </div>
  );
}

/** A list of texts, one field for each. */
export function TextsField(p: Common & { value: string[]; onChange: (value: string[]) => void; placeholder?: string; code?: boolean }) {
  const { value, onChange } = p;
  return (
    <Field {...p} as="group" below>
      {(control) => (
        <>
          <ul className={css.entries}>
            {value.map((text, at) => (
              <li key={at} className={css.entry}>
                <input
                  className={cx(css.control, p.code && css.code)}
                  aria-label={t.form.entry(p.label, at + 1)}
                  aria-invalid={control['aria-invalid']}
                  data-path={p.path && `${p.path}[${at}]`}
                  disabled={p.disabled}
                  value={text}
                  placeholder={p.placeholder}
                  onChange={(event) => onChange(value.with(at, event.target.value))}
                />
                <Button aria-label={t.form.remove(text || t.form.entry(p.label, at + 1))} disabled={p.disabled} onClick={() => onChange(value.toSpliced(at, 1))}>
                  <X size={14} aria-hidden />
                </Button>
              </li>
            ))}
          </ul>
          <div>
            <Button dense id={control.id} data-path={p.path} disabled={p.disabled} aria-label={`${t.form.add}: ${p.label}`} onClick={() => onChange([...value, ''])}>
              <Plus size={14} aria-hidden /> {t.form.add}
            </Button>
          </div>
        </>
      )}
    </Field>
  );
}

/** Fields that belong together, below a heading. */
export function FieldGroup({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className={css.group}>
      <legend>{title}</legend>
      {children}
    </fieldset>
  );
}
