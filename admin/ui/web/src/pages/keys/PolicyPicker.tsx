import { useState } from 'react';
import { useRead } from '../../api';
import { TextField } from '../../parts/fields';
import { Loaded } from '../../parts/Loaded';
import { findPolicies } from './data';
import css from './keys.module.css';
import { text } from './text';

/** Chooses policies; the search is the server's. Chosen ones stay on top. */
export function PolicyPicker({ chosen, onChange }: { chosen: string[]; onChange: (ids: string[]) => void }) {
  const [q, setQ] = useState('');
  const found = useRead(['policies', 'pick', q], (signal) => findPolicies(q, signal), { on: ['revision'], keep: true });
  const toggle = (id: string, on: boolean) => onChange(on ? [...chosen, id] : chosen.filter((one) => one !== id));
  return (
    <fieldset className={css.picker}>
      <legend>{text.policies}</legend>
      <TextField label={text.find} type="search" value={q} onChange={setQ} />
      <p className="muted" role="status">
        {text.chosen(chosen.length)}
      </p>
      <Loaded query={found}>
        {(data) => {
          const names = new Map(data.rows.map((row) => [row.id, row.name]));
          const ids = [...chosen, ...data.rows.map((row) => row.id).filter((id) => !chosen.includes(id))];
          if (ids.length === 0) return <p className="muted">{text.noPolicy}</p>;
          return (
            <ul className={css.choices}>
              {ids.map((id) => (
                <li key={id}>
                  <label>
                    <input type="checkbox" checked={chosen.includes(id)} onChange={(event) => toggle(id, event.target.checked)} />
                    <span>
                      {names.get(id) || id} {names.get(id) && names.get(id) !== id && <span className="muted mono">{id}</span>}
                    </span>
                  </label>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </fieldset>
  );
}
