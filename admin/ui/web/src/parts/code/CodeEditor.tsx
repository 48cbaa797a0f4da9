import { lazy, Suspense } from 'react';
import { Skeleton } from '../Skeleton';

const Editor = lazy(() => import('./Editor'));

export interface CodeEditorProps {
  value: string;
  onChange?: (value: string) => void;
  language?: 'json' | 'yaml' | 'graphql' | 'text';
  label: string;
  readOnly?: boolean;
  /** Marks in the text; lines and columns count from 1. */
  problems?: { line?: number; column?: number; message: string }[];
  /** Height in lines; the rest scrolls. */
  lines?: number;
  /** For GraphQL: completion and checks against it. */
  schema?: import('graphql').GraphQLSchema;
  /** Shows the differences from this text. */
  original?: string;
  /** Where the cursor is put, and with it the focus. */
  goTo?: number;
  /** ⌘Enter. */
  onSubmit?: () => void;
}

/** A text editor, in a chunk of its own. It stands in a shadow root, where its styles need no exception of the policy. */
export function CodeEditor(p: CodeEditorProps) {
  return (
    <Suspense fallback={<Skeleton lines={4} />}>
      <Editor {...p} />
    </Suspense>
  );
}
