// The editors, mounted in the shadow root of the playground, where CodeMirror's styles
// are constructed sheets that the page's policy permits.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintKeymap } from '@codemirror/lint';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { graphql, updateSchema } from 'cm6-graphql';
import type { GraphQLSchema } from 'graphql';

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.attributeName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--warn)' },
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.definitionKeyword], color: 'var(--danger)' },
  { tag: [tags.typeName, tags.className, tags.variableName], color: 'var(--accent)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
]);

const look = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--bg)', color: 'var(--text)', fontSize: '0.8125rem' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.25rem', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)', paddingBlock: '8px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', border: 'none' },
  '.cm-placeholder': { color: 'var(--muted)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--selected)', outline: '1px solid var(--accent)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--border)', borderRadius: '6px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--selected)', color: 'var(--text)' },
  '.cm-completionDetail': { color: 'var(--muted)' },
  '.cm-diagnostic': { fontFamily: 'var(--sans)' },
  // Without the pictures that mark problems by default: the policy of the portal has no data: images.
  '.cm-lintRange': { backgroundImage: 'none', textDecoration: 'underline wavy var(--warn)', textDecorationSkipInk: 'none' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecorationColor: 'var(--danger)' },
});

/**
 * Typing over a selection. Left to itself the browser keeps the look of the replaced text in
 * a style attribute, which the policy of the page refuses with an error.
 */
export const typeOver: Extension = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main, ranges } = view.state.selection;
    const text = event.data;
    if (event.inputType !== 'insertText' || !text || event.isComposing || main.empty || ranges.length > 1) return false;
    event.preventDefault();
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: 'input.type', scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, main.from, main.to, text, insert))) view.dispatch(insert());
    return true;
  },
});

export interface EditorOptions {
  label: string;
  language: 'graphql' | 'json';
  value?: string;
  hint?: string;
  readOnly?: boolean;
  schema?: GraphQLSchema;
  onChange?: (value: string) => void;
  onRun?: () => void;
  /** A type or field was clicked with the modifier key. */
  onDocs?: (type: string) => void;
}

export class Editor {
  private view: EditorView;

  constructor(root: ShadowRoot, parent: Element, o: EditorOptions) {
    const language: Extension = o.language === 'json' ? json() : graphql(o.schema, { onShowInDocs: (_field, type) => type && o.onDocs?.(type) });
    const extensions: Extension[] = [
      language,
      syntaxHighlighting(colours),
      look,
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': o.label }),
    ];
    if (o.readOnly) extensions.push(EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: '0' }));
    else
      extensions.push(
        lineNumbers(),
        history(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        typeOver,
        autocompletion(),
        o.hint ? placeholder(o.hint) : [],
        keymap.of([
          { key: 'Mod-Enter', run: () => (o.onRun?.(), true) },
          // Esc and then Tab leaves the editor for those who use no mouse.
          { key: 'Escape', run: (editor) => (editor.contentDOM.blur(), true) },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          ...lintKeymap,
          indentWithTab,
        ]),
        EditorView.updateListener.of((update) => update.docChanged && o.onChange?.(update.state.doc.toString())),
      );
    this.view = new EditorView({ root, parent, state: EditorState.create({ doc: o.value ?? '', extensions }) });
  }

  get value(): string {
    return this.view.state.doc.toString();
  }

  set value(text: string) {
    if (text !== this.value) this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  schema(schema: GraphQLSchema | undefined) {
    updateSchema(this.view, schema);
  }

  focus() {
    this.view.focus();
  }

  destroy() {
    this.view.destroy();
  }
}
