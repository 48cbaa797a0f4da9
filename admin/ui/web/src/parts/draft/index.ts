export { DraftBar, DraftOffer } from './DraftBar';
export { changes, merge, parse, pathOf, pathText, pretty, setAt, type Change, type Path } from './merge';
export { Recorded, ReplayRun, useSamples } from './Replay';
export { Differences, ReviewSheet, type Publishing } from './ReviewSheet';
export { SaveBar, useSave, type Save } from './SaveBar';
export { TabbedDraft } from './TabbedDraft';
export { useDraft, type Base, type Draft } from './useDraft';
