import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { isDark, theme } from '../../app/theme';
import { useStore } from '../../lib';
import css from './chart.module.css';
import type { ChartProps } from './Chart';

const dashes: number[][] = [[], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], []];
const colourOf = (p: ChartProps, at: number) => p.series[at]!.colour ?? ((at % 5) + 1);

/** The colour of a variable, as the canvas wants it. */
function colour(element: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function stack(p: ChartProps): (number | null)[][] {
  if (!p.stacked) return p.series.map((one) => one.values);
  const sums = p.times.map(() => 0);
  return p.series.map((one) => one.values.map((value, at) => (sums[at] = sums[at]! + (value ?? 0))));
}

export default function Plot(p: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const look = useStore(theme);
  useEffect(() => {
    const element = box.current!;
    const draw = () => {
      const axis = { stroke: colour(element, '--muted'), grid: { stroke: colour(element, '--border'), width: 1 }, ticks: { stroke: colour(element, '--border'), width: 1 }, font: '12px system-ui' };
      return new uPlot(
        {
          width: Math.max(200, element.clientWidth),
          height: p.height ?? 220,
          legend: { show: false },
          cursor: { drag: { x: p.onRange !== undefined, y: false, setScale: false } },
          scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1e-9)] } },
          axes: [axis, { ...axis, size: 70, values: (_, ticks) => ticks.map((tick) => (p.format ?? String)(tick)) }],
          series: [
            {},
            ...p.series.map((one, at) => {
              const line = colour(element, `--chart-${colourOf(p, at)}`);
              return { label: one.label, stroke: line, width: 1.5, dash: dashes[colourOf(p, at) - 1], points: { show: p.times.length < 3 } };
            }),
          ],
          hooks: {
            setSelect: [
              (plot) => {
                if (plot.select.width < 5 || !p.onRange) return;
                p.onRange(plot.posToVal(plot.select.left, 'x'), plot.posToVal(plot.select.left + plot.select.width, 'x'));
              },
            ],
          },
        },
        [p.times, ...stack(p)] as uPlot.AlignedData,
        element,
      );
    };
    let plot = draw();
    const resize = new ResizeObserver(() => plot.setSize({ width: Math.max(200, element.clientWidth), height: p.height ?? 220 }));
    resize.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const again = () => {
      plot.destroy();
      plot = draw();
    };
    dark.addEventListener('change', again);
    return () => {
      dark.removeEventListener('change', again);
      resize.disconnect();
      plot.destroy();
    };
  }, [p, look]);
  return (
    <>
      <div ref={box} className={css.plot} role="img" aria-label={p.summary} data-dark={isDark() || undefined} />
      <ul className={css.legend}>
        {p.series.map((one, at) => (
          <li key={one.label}>
            <svg width="24" height="4" aria-hidden="true">
              <line x1="0" x2="24" y1="2" y2="2" stroke={`var(--chart-${colourOf(p, at)})`} strokeWidth="2" strokeDasharray={dashes[colourOf(p, at) - 1]!.join(' ')} />
            </svg>
            {one.label}
          </li>
        ))}
      </ul>
    </>
  );
}
