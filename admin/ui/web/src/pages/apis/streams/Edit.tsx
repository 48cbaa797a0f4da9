// Editing a stream: views of the draft of its API.
import { useEffect, useState } from 'react';
import { CodeEditor } from '../../../parts/code';
import { Button } from '../../../parts/Button';
import { Facts } from '../../../parts/Card';
import { copyAt, offsetOf, parse, textAt } from '../../../parts/draft/merge';
import type { Draft } from '../../../parts/draft';
import { SelectField, TextField } from '../../../parts/fields';
import { Time } from '../../../parts/Time';
import { same } from '../../../lib';
import { duration, number } from '../../../text/en';
import { isName, streamPath, type GraphNode, type LiveNode, type StreamProblem } from './graph';
import { PhaseBadge } from './Graph';
import { templates } from './templates';
import { text as t } from './text';
import css from './streams.module.css';

/** A text around the value of a stream, as it stands in a definition. */
const around = (name: string, value: string) => `{"x-svc-streaming":{"streams":{${JSON.stringify(name)}:${value}}}}`;

/** A stream as text. What is no JSON stays here, and the draft keeps what was. */
export function StreamEditor({ name, draft, may, problems }: { name: string; draft: Draft; may: boolean; problems: StreamProblem[] }) {
  const path = streamPath(name);
  const value = draft.get(path);
  const [text, setText] = useState(() => textAt(draft.text, path) ?? '{}');
  const { tree, problem } = parse(text);
  const parsed = !problem && tree ? (JSON.parse(text) as unknown) : undefined;
  useEffect(() => {
    // Another view of the draft has changed it.
    if (!draft.broken && !same(parsed, value)) setText(textAt(draft.text, path) ?? '{}');
  }, [value]);
  const change = (next: string) => {
    setText(next);
    const now = parse(next);
    if (now.problem || !now.tree || same(JSON.parse(next), value)) return;
    draft.setText(copyAt(draft.text, around(name, next), path));
  };
  const placed = problem
    ? [problem]
    : problems.map((one) => {
        const before = text.slice(0, offsetOf(text, one.path)).split('\n');
        return { message: one.path ? `${one.path}: ${one.message}` : one.message, line: before.length, column: before.at(-1)!.length + 1 };
      });
  return (
    <>
      <p className="muted">{t.editorHelp}</p>
      <CodeEditor label={t.editor(name)} language="json" value={text} onChange={may ? change : undefined} readOnly={!may} problems={placed} lines={22} />
      <Placed of={problem ? [{ message: t.broken(problem.line, problem.column, problem.message) }] : placed.slice(0, 20)} />
    </>
  );
}

/** Problems with their lines and columns. */
function Placed({ of }: { of: { message: string; line?: number; column?: number }[] }) {
  return (
    <div role="status">
      {of.length > 0 && (
        <ul className={css.problems}>
          {of.map((one, n) => (
            <li key={n}>
              {one.line !== undefined && `${one.line}:${one.column} `}
              {one.message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The members of processors that are scripts, by kind. */
const scripts: Record<string, string[]> = { mapping: ['mapping'], bloblang: ['bloblang'], branch: ['branch.request_map', 'branch.result_map'], filter: ['filter.check'] };

/** What is known of a node, and its scripts with their line breaks. */
export function NodeDetail(p: { name: string; node: GraphNode; live?: LiveNode; draft: Draft; may: boolean; problems: StreamProblem[] }) {
  const { node, live, draft } = p;
  const f = t.facts;
  return (
    <section className={css.detail} aria-label={`${t.detail}: ${node.label || node.path}`}>
      <h3>
        {node.kind} <code>{node.path}</code>
      </h3>
      {live && (
        <Facts
          of={[
            ...(live.phase ? ([[f.state, <PhaseBadge phase={live.phase} />]] as [string, React.ReactNode][]) : []),
            [f.messages, number(live.messages)],
            ...(node.side === 'processor'
              ? ([
                  [f.refused, number(live.errors.refused)],
                  [f.mean, live.messages > 0 ? duration(live.mean_seconds * 1000) : '–'],
                ] as [string, React.ReactNode][])
              : ([
                  [f.bytes, number(live.bytes)],
                  [f.attempts, number(live.attempts)],
                  [f.transient, number(live.errors.transient)],
                  [f.unknown, number(live.errors.unknown)],
                  [f.permanent, number(live.errors.permanent)],
                  [f.again, number(live.again)],
                  [f.clients, number(live.clients)],
                  [f.dropped, number(live.clients_dropped)],
                  [f.lag, live.lag < 0 ? t.unknown : number(live.lag)],
                ] as [string, React.ReactNode][])),
            [
              t.lastError,
              live.last_error ? (
                <>
                  {live.last_error} <Time at={live.last_error_at} />
                </>
              ) : (
                '–'
              ),
            ],
          ]}
        />
      )}
      {(scripts[node.kind] ?? []).map((member) => {
        const path = streamPath(p.name, `${node.path}.${member}`);
        const value = draft.get<string>(path);
        if (typeof value !== 'string') return null;
        const at = `${node.path}.${member}`;
        const wrong = p.problems.filter((one) => one.path === at);
        const label = `${t.script} ${at}`;
        return (
          <div key={member}>
            <CodeEditor label={label} language="text" value={value} onChange={p.may ? (next) => draft.set(path, next) : undefined} readOnly={!p.may} problems={wrong} lines={Math.min(16, Math.max(4, value.split('\n').length + 1))} />
            <Placed of={wrong} />
          </div>
        );
      })}
    </section>
  );
}

/** Adds a stream to a draft. */
export function AddStream({ names, onAdd }: { names: string[]; onAdd: (name: string, stream: Record<string, unknown>) => void }) {
  const [template, setTemplate] = useState(templates[0]!.id);
  const [name, setName] = useState('');
  const taken = names.includes(name);
  const ok = isName(name) && !taken;
  return (
    <form
      className={css.add}
      onSubmit={(event) => {
        event.preventDefault();
        if (!ok) return;
        onAdd(name, templates.find((one) => one.id === template)!.make(name));
        setName('');
      }}
    >
      <SelectField label={t.template} value={template} onChange={setTemplate} options={templates.map((one) => ({ value: one.id, label: one.label }))} />
      <TextField label={t.name} help={taken ? t.taken : name && !ok ? t.nameHelp : undefined} code value={name} onChange={(next) => setName(next.trim())} />
      <Button type="submit" kind="primary" disabled={!ok}>
        {t.add}
      </Button>
    </form>
  );
}
