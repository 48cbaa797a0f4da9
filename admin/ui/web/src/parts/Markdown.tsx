// Markdown as developers see it: headings, lists, tables, quotes, code, links. It becomes
// elements, never HTML text; images are shown by their alternative text.
import type { ReactNode } from 'react';
import css from './Markdown.module.css';

export function Markdown({ text }: { text: string }) {
  return <div className={css.text}>{blocks(text.replace(/\r\n?/g, '\n').split('\n'))}</div>;
}

const fence = /^ {0,3}(```|~~~)/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const rule = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const quote = /^ {0,3}> ?/;
const bullet = /^ {0,3}[-*+]\s+/;
const numbered = /^ {0,3}(\d{1,9})[.)]\s+/;
const divider = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines: string[]): ReactNode[] {
  const all: ReactNode[] = [];
  let at = 0;
  const take = (fits: (line: string, index: number) => boolean): string[] => {
    const from = at;
    while (at < lines.length && fits(lines[at]!, at - from)) at++;
    return lines.slice(from, at);
  };
  const starts = (line: string) => [fence, heading, rule, quote, bullet, numbered].some((one) => one.test(line));
  while (at < lines.length) {
    const line = lines[at]!;
    const key = all.length;
    const found = heading.exec(line);
    if (line.trim() === '') at++;
    else if (fence.test(line)) {
      const mark = fence.exec(line)![1]!;
      at++;
      const code = take((one) => !one.trimStart().startsWith(mark));
      at++;
      all.push(
        <pre key={key} tabIndex={0}>
          <code>{code.join('\n')}</code>
        </pre>,
      );
    } else if (found) {
      at++;
      all.push(headingOf(found[1]!.length, inline(found[2]!), key));
    } else if (rule.test(line)) {
      at++;
      all.push(<hr key={key} />);
    } else if (quote.test(line)) {
      all.push(<blockquote key={key}>{blocks(take((one) => quote.test(one)).map((one) => one.replace(quote, '')))}</blockquote>);
    } else if (bullet.test(line) || numbered.test(line)) {
      const kind = bullet.test(line) ? bullet : numbered;
      const first = Number(numbered.exec(line)?.[1] ?? 1);
      const body = take((one, index) => index === 0 || kind.test(one) || /^\s{2,}\S/.test(one) || (one.trim() === '' && /^(\s{2,}\S)/.test(lines[at + 1] ?? '')));
      const items = itemsOf(body, kind).map((item, index) => <li key={index}>{item.length === 1 ? inline(item[0]!) : blocks(item)}</li>);
      all.push(kind === bullet ? <ul key={key}>{items}</ul> : (<ol key={key} start={first}>{items}</ol>));
    } else if (line.includes('|') && divider.test(lines[at + 1] ?? '')) {
      all.push(<Table key={key} rows={take((one) => one.includes('|'))} />);
    } else {
      const paragraph = take((one, index) => one.trim() !== '' && (index === 0 || !starts(one)));
      all.push(<p key={key}>{inline(paragraph.map((one) => one.trimStart()).join('\n'))}</p>);
    }
  }
  return all;
}

/** Below the page's own h1 and h2. */
function headingOf(level: number, text: ReactNode, key: number): ReactNode {
  if (level <= 1) return <h3 key={key}>{text}</h3>;
  if (level === 2) return <h4 key={key}>{text}</h4>;
  return <h5 key={key}>{text}</h5>;
}

function itemsOf(lines: string[], kind: RegExp): string[][] {
  const items: string[][] = [];
  for (const line of lines) {
    if (kind.test(line)) items.push([line.replace(kind, '')]);
    else items.at(-1)?.push(line.replace(/^\s{2,4}/, ''));
  }
  return items;
}

function Table({ rows }: { rows: string[] }) {
  const cells = (row: string) => row.trim().replace(/^\||\|$/g, '').split('|');
  const [head, , ...body] = rows;
  return (
    <div className={css.scroll} tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {cells(head!).map((cell, at) => (
              <th key={at} scope="col">
                {inline(cell.trim())}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row, at) => (
            <tr key={at}>
              {cells(row).map((cell, column) => (
                <td key={column}>{inline(cell.trim())}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const spans: [RegExp, (m: RegExpExecArray) => ReactNode][] = [
  [/^\\([!-/:-@[-`{-~])/, (m) => m[1]],
  [/^(`+)([\s\S]+?)\1(?!`)/, (m) => <code>{m[2]!.trim()}</code>],
  [/^\*\*(?=\S)([\s\S]+?\S)\*\*/, (m) => <strong>{inline(m[1]!)}</strong>],
  [/^__(?=\S)([\s\S]+?\S)__/, (m) => <strong>{inline(m[1]!)}</strong>],
  [/^~~(?=\S)([\s\S]+?\S)~~/, (m) => <del>{inline(m[1]!)}</del>],
  [/^\*(?=[^\s*])([^*]*[^\s*])\*/, (m) => <em>{inline(m[1]!)}</em>],
  [/^_(?=[^\s_])([^_]*[^\s_])_(?!\w)/, (m) => <em>{inline(m[1]!)}</em>],
  [/^!\[([^\]]*)\]\([^)\s]*(?:\s+"[^"]*")?\)/, (m) => m[1]],
  [/^\[([^\]]+)\]\(([^)\s]+)(?:\s+"[^"]*")?\)/, (m) => linkOf(m[2]!, inline(m[1]!))],
  [/^<(https?:\/\/[^\s<>]+)>/, (m) => linkOf(m[1]!, m[1])],
];

/** Links lead to the web or to an address; others are shown as text, since they run in the portal. */
function linkOf(target: string, text: ReactNode): ReactNode {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return <span className={css.relative}>{text}</span>;
  return (
    <a href={target} rel="nofollow noreferrer noopener" target="_blank">
      {text}
    </a>
  );
}

function inline(text: string): ReactNode[] {
  const all: ReactNode[] = [];
  let plain = '';
  let rest = text;
  while (rest) {
    const hit = /^[\\`*_~![<]/.test(rest) && !(/^_/.test(rest) && /\w$/.test(plain)) ? spans.map(([pattern, make]) => [pattern.exec(rest), make] as const).find(([m]) => m) : undefined;
    if (hit) {
      if (plain) all.push(plain);
      plain = '';
      all.push(<span key={all.length}>{hit[1](hit[0]!)}</span>);
      rest = rest.slice(hit[0]![0].length);
    } else {
      plain += rest[0];
      rest = rest.slice(1);
    }
  }
  if (plain) all.push(plain);
  return all;
}
