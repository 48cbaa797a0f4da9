import css from './chart.module.css';

/** A small line without axes. `label` says what it shows. */
export function Spark({ values, label, colour = 1 }: { values: number[]; label: string; colour?: 1 | 2 | 3 | 4 | 5 | 6 }) {
  if (values.length < 2) return null;
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, at) => `${((at / (values.length - 1)) * 96 + 2).toFixed(1)},${(22 - (value / most) * 20).toFixed(1)}`).join(' ');
  return (
    <svg className={css.spark} width="100" height="24" viewBox="0 0 100 24" role="img" aria-label={label}>
      <polyline points={points} fill="none" stroke={`var(--chart-${colour})`} strokeWidth="1.5" strokeLinejoin="round" />
    </svg>
  );
}
