// A stream as a small graph: three columns, below each other where there is no room.
import { useId } from 'react';
import { Badge } from '../../../parts/Badge';
import { Time } from '../../../parts/Time';
import { cx } from '../../../lib';
import { number, short, t as all } from '../../../text/en';
import { errorsOf, nodesOf, type Graph as Model, type GraphNode, type LiveStream, type Phase } from './graph';
import { text as t } from './text';
import css from './streams.module.css';

const kinds: Record<Phase, 'ok' | 'info' | 'warn' | 'danger' | 'plain'> = {
  running: 'ok',
  waiting: 'info',
  starting: 'info',
  reconnecting: 'warn',
  failing: 'danger',
  draining: 'plain',
  stopped: 'plain',
};

/** The phase of a stream or connector, in a word. */
export function PhaseBadge({ phase }: { phase: Phase | '' }) {
  return phase ? <Badge kind={kinds[phase]}>{t.phases[phase]}</Badge> : null;
}

export function Graph(p: { name: string; graph: Model; live?: LiveStream; selected?: string; problems: Set<string>; onSelect: (path: string) => void }) {
  const { graph } = p;
  const column = (nodes: GraphNode[]) => <Nodes {...p} nodes={nodes} />;
  return (
    <div className={css.graph} role="group" aria-label={t.graph(p.name)}>
      <Column title={t.inputs} kind={css.from}>
        {column(graph.inputs)}
      </Column>
      <Column title={t.processors} kind={css.chain}>
        {graph.processors.length > 0 ? column(graph.processors) : <p className={cx('muted', css.through)}>{t.noProcessors}</p>}
      </Column>
      <Column title={t.outputs} note={graph.pattern && (t.patterns[graph.pattern] ?? graph.pattern)} kind={css.to}>
        {column(graph.outputs)}
        {graph.dead.length > 0 && (
          <div className={css.dead}>
            <h4>{t.dead}</h4>
            {column(graph.dead)}
          </div>
        )}
      </Column>
    </div>
  );
}

function Column({ title, note, kind, children }: { title: string; note?: string; kind?: string; children: React.ReactNode }) {
  const id = useId();
  return (
    <div role="group" className={cx(css.column, kind)} aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {note && <p className={cx('muted', css.note)}>{note}</p>}
      {children}
    </div>
  );
}

function Nodes(p: { nodes: GraphNode[]; live?: LiveStream; selected?: string; problems: Set<string>; onSelect: (path: string) => void }) {
  return (
    <ol className={css.nodes}>
      {p.nodes.map((node) => {
        const live = p.live?.nodes.get(node.path);
        const errors = live ? errorsOf(live) : 0;
        const faulty = [...p.problems].some((path) => path === node.path || path.startsWith(`${node.path}.`) || path.startsWith(`${node.path}[`));
        return (
          <li key={node.path} style={{ marginInlineStart: `calc(${node.depth} * var(--s5))` }}>
            <button type="button" className={css.node} aria-pressed={p.selected === node.path} onClick={() => p.onSelect(p.selected === node.path ? '' : node.path)}>
              <span className={css.head}>
                <strong>{node.kind || '?'}</strong>
                {live && node.side !== 'processor' && <PhaseBadge phase={live.phase} />}
                {faulty && <Badge kind="danger">{all.form.problems(1)}</Badge>}
              </span>
              {(node.label || node.detail) && <span className={css.what}>{[node.label, node.detail].filter(Boolean).join(' · ')}</span>}
              {live && (
                <span className={css.count}>
                  {t.messages(live.messages)}
                  {errors > 0 && <Badge kind="danger">{t.errors(errors)}</Badge>}
                  {live.clients > 0 && <span>{t.clients(live.clients)}</span>}
                  {live.lag > 0 && <span>{t.lag(live.lag)}</span>}
                </span>
              )}
            </button>
          </li>
        );
      })}
    </ol>
  );
}

/** The same as a table. */
export function GraphTable({ name, graph, live }: { name: string; graph: Model; live?: LiveStream }) {
  return (
    <details>
      <summary>{t.asTable}</summary>
      <div className={css.scroll} tabIndex={0} role="region" aria-label={t.table(name)}>
        <table className={css.table} aria-label={t.table(name)}>
          <thead>
            <tr>
              <th scope="col">{t.columns.node}</th>
              <th scope="col">{t.columns.side}</th>
              <th scope="col">{t.columns.state}</th>
              <th scope="col" className={css.end}>
                {t.columns.messages}
              </th>
              <th scope="col" className={css.end}>
                {t.columns.errors}
              </th>
              <th scope="col" className={css.end}>
                {t.columns.clients}
              </th>
              <th scope="col" className={css.end}>
                {t.columns.lag}
              </th>
              <th scope="col">{t.columns.last}</th>
            </tr>
          </thead>
          <tbody>
            {nodesOf(graph).map((node) => {
              const one = live?.nodes.get(node.path);
              return (
                <tr key={node.path}>
                  <th scope="row">
                    {node.kind} <code>{node.label || node.path}</code>
                  </th>
                  <td>{t.sides[node.side]}</td>
                  <td>{one?.phase ? t.phases[one.phase] : '–'}</td>
                  <td className={css.end}>{one ? number(one.messages) : '–'}</td>
                  <td className={css.end}>{one ? number(errorsOf(one)) : '–'}</td>
                  <td className={css.end}>{one && node.side !== 'processor' ? number(one.clients) : '–'}</td>
                  <td className={css.end}>{one && one.lag >= 0 ? short(one.lag) : '–'}</td>
                  <td>
                    {one?.last_error ? (
                      <>
                        {one.last_error} <Time at={one.last_error_at} />
                      </>
                    ) : (
                      '–'
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </details>
  );
}
