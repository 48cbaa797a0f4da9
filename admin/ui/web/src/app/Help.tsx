import { useStore } from '../lib';
import { Dialog } from '../parts/Dialog';
import { SwitchField } from '../parts/fields';
import { t } from '../text/en';
import css from './Help.module.css';
import { modKey, setSingleLetters, shortcuts, singleLetters } from './shortcuts';

/** The shortcuts that work now. */
export default function Help({ onClose }: { onClose: () => void }) {
  const all = useStore(shortcuts);
  const on = useStore(singleLetters);
  const shown = all.filter((one, at) => all.findLastIndex((other) => other.keys === one.keys) === at);
  return (
    <Dialog title={t.help.title} onClose={onClose}>
      <SwitchField label={t.help.letters} value={on} onChange={setSingleLetters} />
      <dl className={css.list}>
        {shown.map((one) => (
          <div key={one.keys}>
            <dt>
              {one.keys.split(' ').map((key) => (
                <kbd key={key}>{key.replace('Mod+', modKey).replace(/^(.*)([a-z])$/, (_, mod: string, letter: string) => mod + (mod ? letter.toUpperCase() : letter))}</kbd>
              ))}
            </dt>
            <dd>{one.label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
