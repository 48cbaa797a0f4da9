import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Annotation, Compartment, EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';
import css from './code.module.css';
import type { CodeEditorProps } from './CodeEditor';

// The colours are variables of the page, which reach into the shadow root.
const highlight = HighlightStyle.define([
  { tag: [tags.propertyName, tags.attributeName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--warn)' },
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--danger)' },
  { tag: [tags.typeName, tags.className, tags.variableName], color: 'var(--accent)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--danger)', textDecoration: 'underline' },
]);

const look = EditorView.theme({
  '&': { backgroundColor: 'var(--bg)', color: 'var(--text)', fontSize: '0.8125rem' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.25rem', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)', paddingBlock: '8px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--hover) 60%, transparent)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': { backgroundColor: 'var(--selected)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--selected)', outline: '1px solid var(--accent)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', border: '1px solid var(--border)', borderRadius: '6px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--selected)', color: 'var(--text)' },
  '.cm-diagnostic': { fontFamily: 'var(--sans)' },
  '.cm-panels': { backgroundColor: 'var(--sunken)', color: 'var(--text)' },
  '.cm-panels input, .cm-panels button': { backgroundColor: 'var(--bg)', backgroundImage: 'none', color: 'var(--text)', border: '1px solid var(--control-border)', borderRadius: '4px' },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--hover)', border: 'none', color: 'var(--muted)' },
  '.cm-changedLine': { backgroundColor: 'color-mix(in srgb, var(--ok-bg) 80%, transparent)' },
  '.cm-collapsedLines': { background: 'var(--sunken)', color: 'var(--muted)' },
  '.cm-deletedChunk': { backgroundColor: 'var(--danger-bg)' },
});

async function language(p: CodeEditorProps): Promise<Extension> {
  switch (p.language) {
    case 'json':
      return json();
    case 'yaml':
      return (await import('@codemirror/lang-yaml')).yaml();
    case 'graphql': {
      const { graphql, graphqlLanguageSupport } = await import('cm6-graphql');
      return p.schema ? graphql(p.schema) : graphqlLanguageSupport(); // without a schema its checks find nothing, and would take the marks of problems away
    }
    default:
      return [];
  }
}

async function comparison(original: string | undefined): Promise<Extension> {
  if (original === undefined) return [];
  const { unifiedMergeView } = await import('@codemirror/merge');
  return unifiedMergeView({ original, mergeControls: false, collapseUnchanged: {} });
}

function diagnostics(state: EditorState, problems: CodeEditorProps['problems']): Diagnostic[] {
  return (problems ?? [])
    .filter((one) => one.line)
    .map((one): Diagnostic => {
      const line = state.doc.line(Math.max(1, Math.min(one.line!, state.doc.lines)));
      const from = Math.min(line.to, line.from + Math.max(0, (one.column ?? 1) - 1));
      return { from, to: one.column ? Math.min(line.to, from + 1) : line.to, severity: 'error', message: one.message };
    });
}

/** Marks the value of the page, which is not reported back: the page may have a newer one by then. */
const ofPage = Annotation.define<boolean>();

export default function Editor(p: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const props = useRef(p);
  useEffect(() => {
    props.current = p;
  });
  // What was reported and has not come back as the value yet. A page that is drawn late
  // brings an older text, which is not put over what was typed since.
  const typed = useRef(new Set<string>());
  const parts = useRef({ language: new Compartment(), readOnly: new Compartment(), compare: new Compartment() });

  useEffect(() => {
    const { language: lang, readOnly, compare } = parts.current;
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: 'open' });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: props.current.value,
        extensions: [
          lineNumbers(),
          foldGutter(),
          lintGutter(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          autocompletion(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          syntaxHighlighting(highlight),
          look,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': props.current.label }),
          keymap.of([
            { key: 'Mod-Enter', run: () => (props.current.onSubmit ? (props.current.onSubmit(), true) : false) },
            // Esc and then Tab leaves the editor for those who use no mouse.
            { key: 'Escape', run: (editor) => (editor.contentDOM.blur(), host.current?.focus(), true) },
            ...closeBracketsKeymap,
            ...defaultKeymap,
            ...searchKeymap,
            ...historyKeymap,
            ...foldKeymap,
            ...completionKeymap,
            ...lintKeymap,
            indentWithTab,
          ]),
          lang.of([]),
          compare.of([]),
          readOnly.of([]),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((one) => one.annotation(ofPage))) return;
            const text = update.state.doc.toString();
            typed.current.add(text);
            props.current.onChange?.(text);
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);

  useEffect(() => {
    let current = true;
    void language(props.current).then((extension) => current && view.current?.dispatch({ effects: parts.current.language.reconfigure(extension) }));
    return () => {
      current = false;
    };
  }, [p.language, p.schema]);
  useEffect(() => {
    let current = true;
    void comparison(p.original).then((extension) => current && view.current?.dispatch({ effects: parts.current.compare.reconfigure(extension) }));
    return () => {
      current = false;
    };
  }, [p.original]);
  useEffect(() => {
    view.current?.dispatch({ effects: parts.current.readOnly.reconfigure(p.readOnly ? [EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: '0' })] : []) });
  }, [p.readOnly]);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const same = editor.state.doc.toString() === p.value;
    if (!same && typed.current.has(p.value)) return;
    if (!same) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: p.value }, annotations: ofPage.of(true) });
    typed.current.clear();
  }, [p.value]);
  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, diagnostics(editor.state, p.problems)));
  }, [p.problems, p.value]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || p.goTo === undefined) return;
    const anchor = Math.min(p.goTo, editor.state.doc.length);
    editor.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
    editor.focus();
  }, [p.goTo]);

  return <div ref={host} className={css.editor} role="group" aria-label={p.label} tabIndex={-1} style={p.lines ? { blockSize: `calc(${p.lines} * 1.25rem + 18px)` } : undefined} data-editor />;
}
