import { useRead } from '../../api/query';
import { Card } from '../../parts/Card';
import { Chart } from '../../parts/chart';
import { Link } from '../../parts/Link';
import { Loaded } from '../../parts/Loaded';
import { number, short } from '../../text/en';
import { loadOperations, loadRefused, loadUsage } from './read';
import { text as t } from './text';
import css from './apis.module.css';

/** Calls of the last day by the hour, and why calls were refused. */
export function TrafficTab({ id, graphql }: { id: string; graphql: boolean }) {
  const usage = useRead(['api', id, 'usage', 'hours'], (signal) => loadUsage(id, { step: 'hour', page_size: '100' }, signal), { on: ['usage_until'] });
  const refused = useRead(['api', id, 'refused'], (signal) => loadRefused(id, signal), { on: ['usage_until'] });
  return (
    <>
      <Card title={t.last24}>
        <Loaded query={usage}>
          {(report) => {
            const rows = new Map((report.Data ?? []).map((row) => [Date.parse(row.at!) / 1000, row]));
            const times: number[] = [];
            for (let at = Date.parse(report.from) / 1000; at < Date.parse(report.to) / 1000; at += 3600) times.push(at);
            return (
              <>
                <Chart
                  summary={t.summary(report.totals.hits, report.totals.errors)}
                  times={times}
                  format={short}
                  series={[
                    { label: t.calls, values: times.map((at) => rows.get(at)?.hits ?? 0), colour: 1 },
                    { label: t.errors, values: times.map((at) => rows.get(at)?.errors ?? 0), colour: 6 },
                  ]}
                />
                <p className="muted">{t.counted(new Date(report.from).toLocaleString(), new Date(report.to).toLocaleString())}</p>
              </>
            );
          }}
        </Loaded>
      </Card>
      <Card title={t.refusedCalls} actions={<Link to="/traffic/refusals" search={{ api: id }}>{t.tabs.traffic}</Link>}>
        <Loaded query={refused}>
          {(report) =>
            (report.Data ?? []).length === 0 ? (
              <p className="muted">{t.noRefused}</p>
            ) : (
              <div className={css.scroll}>
                <table className={css.table} aria-label={t.refusedCalls}>
                  <thead>
                    <tr>
                      <th scope="col">{t.reason}</th>
                      <th scope="col" className={css.end}>
                        {t.calls}
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {(report.Data ?? []).map((row) => (
                      <tr key={row.reason}>
                        <td>
                          <code>{row.reason}</code>
                        </td>
                        <td className={css.end}>{number(row.hits)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Loaded>
      </Card>
      {graphql && <OperationsRun id={id} />}
    </>
  );
}

function OperationsRun({ id }: { id: string }) {
  const run = useRead(['api', id, 'operations run'], (signal) => loadOperations(id, signal), { on: ['usage_until'] });
  return (
    <Card title={t.operationsRun}>
      <Loaded query={run}>
        {({ operations, since, silent }) =>
          !since || operations.length === 0 ? (
            <p className="muted">{t.noOperations}</p>
          ) : (
            <>
              <div className={css.scroll}>
                <table className={css.table} aria-label={t.operationsRun}>
                  <thead>
                    <tr>
                      <th scope="col">{t.operationColumns.name}</th>
                      <th scope="col">{t.operationColumns.kind}</th>
                      {[t.operationColumns.runs, t.operationColumns.failed, t.operationColumns.refused].map((label) => (
                        <th key={label} scope="col" className={css.end}>
                          {label}
                        </th>
                      ))}
                    </tr>
                  </thead>
                  <tbody>
                    {operations.map((one) => (
                      <tr key={`${one.kind} ${one.name}`}>
                        <td>{one.name ? <code>{one.name}</code> : <span className="muted">{t.unnamed}</span>}</td>
                        <td>{one.kind}</td>
                        <td className={css.end}>{number(one.ok + one.failed + one.refused)}</td>
                        <td className={css.end}>{number(one.failed)}</td>
                        <td className={css.end}>{number(one.refused)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <p className="muted">{t.operationsSince(new Date(since).toLocaleString(), silent)}</p>
            </>
          )
        }
      </Loaded>
    </Card>
  );
}
