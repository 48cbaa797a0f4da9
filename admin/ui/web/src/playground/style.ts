/** The styles of the playground, for a constructed sheet of its shadow root. */
export const style = `
:host { display: block; min-height: 28rem; height: 100%; container-type: inline-size; color: var(--text); font: 0.875rem/1.25rem var(--sans) }
* { box-sizing: border-box }
button, input, select { font: inherit; color: inherit }
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
.all { display: grid; grid-template-rows: auto auto minmax(0, 1fr); height: 100%; border: 1px solid var(--border); border-radius: 6px; overflow: hidden; background: var(--bg) }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; padding: 8px; border-bottom: 1px solid var(--border); background: var(--sunken) }
.bar .space { flex: 1 }
button { min-height: 2rem; padding-inline: 10px; border: 1px solid var(--control-border); border-radius: 6px; background: var(--bg); cursor: pointer }
button:hover { background: var(--hover) }
button:disabled { opacity: .6; cursor: default }
button[aria-pressed='true'] { background: var(--selected); border-color: var(--accent) }
button.run { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 550 }
button.run:hover { background: var(--accent-hover) }
button.plain, button.link { min-height: 0; padding: 0; border: 0; background: none }
button.link { color: var(--accent); text-decoration: underline; font: inherit }
button.plain { color: var(--muted) }
select, input { min-height: 2rem; border: 1px solid var(--control-border); border-radius: 6px; background: var(--bg); padding-inline: 8px }
.tabs { display: flex; gap: 4px; padding: 4px 8px 0; overflow-x: auto; border-bottom: 1px solid var(--border); background: var(--sunken) }
.tabs button { border: 0; border-radius: 6px 6px 0 0; background: none; color: var(--muted); white-space: nowrap; max-width: 16rem; overflow: hidden; text-overflow: ellipsis }
.tabs button[aria-selected='true'] { background: var(--bg); color: var(--text); box-shadow: inset 0 2px var(--accent) }
.panes { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); min-height: 0 }
.panes.with-docs { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr) minmax(14rem, 20rem) }
.ask { display: grid; grid-template-rows: minmax(8rem, 3fr) auto minmax(6rem, 1fr); min-height: 0; border-inline-end: 1px solid var(--border) }
.editor { min-height: 0; overflow: hidden; position: relative }
.editor[hidden] { display: none }
.answer { display: grid; grid-template-rows: auto auto auto minmax(0, 1fr); min-height: 0 }
.answer > .editor { grid-row: 4 }
.answer:has(> .results:not([hidden])) { grid-template-rows: auto auto minmax(8rem, 3fr) minmax(6rem, 2fr) }
.results { display: grid; grid-template-rows: auto minmax(0, 1fr); min-height: 0; border-bottom: 1px solid var(--border) }
.results[hidden] { display: none }
.results .tools { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; padding: 8px }
.results .figures { font-variant-numeric: tabular-nums }
.results .list { list-style: none; margin: 0; padding: 0; overflow: auto; font: 0.8125rem/1.25rem var(--mono); border-block-start: 1px solid var(--border) }
.results .list:focus-visible { outline-offset: -2px }
.results li { display: grid; grid-template-columns: auto auto minmax(0, 1fr); gap: 8px; padding: 4px 8px; cursor: pointer; border-block-end: 1px solid var(--border) }
.results li:hover { background: var(--hover) }
.results li[aria-selected='true'] { background: var(--selected); box-shadow: inset 2px 0 var(--accent) }
.results .preview { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.status { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; padding: 8px; border-bottom: 1px solid var(--border); min-height: 2.75rem }
.good { color: var(--ok) } .bad { color: var(--danger) } .near { color: var(--warn) } .muted { color: var(--muted) }
.refusal { padding: 8px; border-bottom: 1px solid var(--border); background: var(--danger-bg); max-height: 16rem; overflow: auto }
.refusal p { margin: 0 0 4px } .refusal ol, .refusal ul { margin: 4px 0 0; padding-inline-start: 20px }
.refusal[hidden] { display: none }
.docs { display: grid; grid-template-rows: auto minmax(0, 1fr); min-height: 0; border-inline-start: 1px solid var(--border) }
.docs[hidden] { display: none }
.docs-head { padding: 8px; border-bottom: 1px solid var(--border) } .docs-head input { width: 100% }
.docs-body { padding: 8px 12px; overflow: auto }
.docs h2 { margin: 8px 0 4px; font-size: 1rem } .docs h3 { font-size: .875rem; margin: 12px 0 4px } .docs ul { margin: 4px 0; padding-inline-start: 18px } .docs p { margin: 4px 0 }
.field { padding-block: 6px; border-bottom: 1px solid var(--border) }
code, .mono { font: 0.8125rem/1.25rem var(--mono) }
.past { position: absolute; inset: 0; overflow: auto; background: var(--bg); padding: 8px; z-index: 1 }
.past[hidden] { display: none }
.past ul { list-style: none; margin: 8px 0 0; padding: 0 }
.past li button { width: 100%; text-align: start; margin-bottom: 4px; font: 0.8125rem/1.25rem var(--mono); overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
details { padding: 0 8px 8px } summary { cursor: pointer }
dl { display: grid; grid-template-columns: auto 1fr; gap: 2px 12px; margin: 4px 0; max-height: 10rem; overflow: auto } dd { margin: 0; overflow-wrap: anywhere }
@container (max-width: 46rem) {
  .all { height: auto; overflow: visible }
  .panes, .panes.with-docs { grid-template-columns: minmax(0, 1fr) }
  .ask { grid-template-rows: 16rem auto 8rem; border-inline-end: 0 }
  .answer:has(> .results:not([hidden])) { grid-template-rows: auto auto 16rem 10rem }
  .answer { min-height: 16rem; border-block-start: 1px solid var(--border) }
  .docs { border-inline-start: 0; border-block-start: 1px solid var(--border); max-height: 24rem }
}
@media (pointer: coarse) { button:not(.link):not(.plain), select, input { min-height: 44px } }
`;

/** The colours and fonts of the public page; the others have those of src/styles/tokens.css. */
export const tokens = `
:root {
  color-scheme: light dark;
  --bg: light-dark(#ffffff, #101318); --sunken: light-dark(#f5f6f8, #0a0c10); --raised: light-dark(#ffffff, #181c23);
  --hover: light-dark(#eceff3, #222832); --selected: light-dark(#e4eefc, #16294a);
  --text: light-dark(#14181f, #e7eaef); --muted: light-dark(#545d6b, #a0a9b6);
  --border: light-dark(#d6dae1, #2d343f); --control-border: light-dark(#79828f, #727c8b);
  --accent: light-dark(#0a5bd0, #79aefc); --accent-hover: light-dark(#084aa8, #9cc4ff); --on-accent: light-dark(#ffffff, #08152b);
  --ok: light-dark(#0b6e37, #56c78f); --warn: light-dark(#815300, #e3b341); --danger: light-dark(#b91f25, #ff8b85); --danger-bg: light-dark(#fdebeb, #36191a);
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
html, body { height: 100%; margin: 0; background: var(--bg); color: var(--text) }
body { display: grid; grid-template-rows: auto minmax(0, 1fr) }
h1 { margin: 8px 8px 0; font: 600 1rem/1.5rem var(--sans) }
main { padding: 8px; box-sizing: border-box; min-width: 0 }
`;
