// The texts of the frame and of the shared parts. Pages keep theirs in text.ts beside
// them, in the same form: an object of strings and functions, so that a missing one does
// not compile.

const plurals = new Intl.PluralRules('en');

/** "1 key", "2 keys": the forms are for one and for all others. */
export function plural(count: number, one: string, other: string): string {
  return `${number(count)} ${plurals.select(count) === 'one' ? one : other}`;
}

const numbers = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const number = (value: number) => numbers.format(value);

/** 4,210 and 1.2M: short from ten thousand on. */
export const short = (value: number) => (Math.abs(value) < 10_000 ? numbers.format(value) : compact.format(value));

export const percent = (part: number) => `${numbers.format(Math.round(part * 1000) / 10)} %`;

/** Milliseconds with a unit that suits. */
export function duration(ms: number): string {
  if (ms < 1) return `${numbers.format(Math.round(ms * 100) / 100)} ms`;
  if (ms < 1000) return `${numbers.format(Math.round(ms * 10) / 10)} ms`;
  if (ms < 120_000) return `${numbers.format(Math.round(ms / 100) / 10)} s`;
  return seconds(ms / 1000);
}

/** Seconds as at most two units: "4 h 12 min". */
export function seconds(all: number): string {
  let rest = Math.max(0, Math.round(all));
  const parts: string[] = [];
  for (const [unit, size] of [['d', 86_400], ['h', 3600], ['min', 60], ['s', 1]] as const) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(' ') || '0 s';
}

export const en = {
  product: 'Sluice',
  skip: 'Skip to the content',
  loading: 'Loading',
  retry: 'Retry',
  close: 'Close',
  cancel: 'Cancel',
  back: 'Back',
  save: 'Save',
  dismiss: 'Dismiss',
  copy: 'Copy',
  copied: 'Copied',
  nothing: '–',

  nav: {
    label: 'Main',
    menu: 'Menu',
    groups: { gateway: 'Gateway', portal: 'Portal', insight: 'Insight', system: 'System' },
  },

  top: {
    palette: 'Search, or paste an id or a key',
    account: 'Account',
    about: 'About',
    signOut: 'Sign out',
    theme: 'Appearance',
    themes: { system: 'As the system', light: 'Light', dark: 'Dark' },
    shortcuts: 'Keyboard shortcuts',
    revision: (revision: number) => `rev ${revision}`,
    gateways: (ready: number, all: number) => (all === 0 ? 'no gateway' : `${ready} of ${all}`),
    gatewaysLong: (ready: number, all: number) =>
      all === 0 ? 'No gateway has reported yet' : `${ready} of ${all} gateways serve the newest revision`,
    offline: 'The server does not answer. What you see is from before; this page goes on by itself.',
  },

  failure: {
    title: 'This did not work',
    what: (method: string, path: string) => `${method} ${path}`,
    requestID: 'Request id',
    forbidden: (role: string) => `Your role is ${role}. A user with a higher role can do this.`,
    wait: (seconds: number) => `The next try is in ${plural(seconds, 'second', 'seconds')}.`,
    stale: (age: string) => `This is from ${age}. It could not be read again:`,
    page: 'This page could not be drawn.',
    newer: 'Sluice was upgraded while this page was open. Load the page again to go on.',
    reload: 'Load the page again',
  },

  history: {
    actions: { created: 'Created', updated: 'Changed', deleted: 'Deleted' } as Record<string, string>,
    nobody: 'nobody in particular',
    revision: (number: number) => `Revision ${number}`,
    newer: 'Newer changes',
    older: 'Older changes',
  },
  list: {
    search: 'Search',
    clear: 'Clear the filters',
    noMatch: 'Nothing matches.',
    any: 'any',
    selected: (count: number) => `${number(count)} selected`,
    selectAll: 'Select all on this page',
    select: (what: string) => `Select ${what}`,
    unselect: 'Clear the selection',
    pages: 'Pages',
    page: (page: number, pages: number) => `Page ${number(page)} of ${number(pages)}`,
    previous: 'Previous page',
    next: 'Next page',
    total: (count: number, capped: boolean, [one, other]: readonly [string, string]) => (capped ? `${number(count)}+ ${other}` : plural(count, one, other)),
    rows: ['row', 'rows'] as const,
    sortedUp: 'sorted, smallest first',
    sortedDown: 'sorted, largest first',
    keys: { down: 'Next row', up: 'Previous row', open: 'Open the row', edit: 'Edit the row', select: 'Select the row', search: 'Search' },
    results: (count: number) => (count === 0 ? 'No results' : plural(count, 'result on this page', 'results on this page')),
    bulkDone: (count: number) => plural(count, 'done', 'done'),
    bulkFailed: (name: string, why: string) => `${name}: ${why}`,
  },

  bulk: {
    enable: 'Enable',
    disable: 'Disable',
    labels: 'Labels…',
    export: 'Export',
    delete: 'Delete…',
    deleteWord: 'delete',
    labelsTitle: 'Labels to add',
    apis: (count: number) => plural(count, 'API', 'APIs'),
    policies: (count: number) => plural(count, 'policy', 'policies'),
    more: (count: number) => `and ${number(count)} more`,
    same: 'All of them are like this: nothing would change.',
    progress: (ended: number, all: number) => `${number(ended)} of ${number(all)} done`,
    results: 'Results',
    thing: 'Name',
    result: 'Result',
    waiting: 'waiting',
    running: 'running',
    good: 'done',
    already: 'was so already',
    skipped: 'not tried',
    stop: 'Stop',
    again: 'Try the others again',
  },

  form: {
    required: 'required',
    add: 'Add',
    remove: (what: string) => `Remove ${what}`,
    problems: (count: number) => plural(count, 'problem', 'problems'),
    problemsTitle: 'To be put right',
    show: 'Show',
    hide: 'Hide',
    default: (value: string) => `Default: ${value}`,
    entry: (label: string, at: number) => `${label}, entry ${at}`,
  },

  pick: { search: 'Search by name' },

  draft: {
    restored: (age: string) => `Your changes from ${age} were kept.`,
    discard: 'Discard them',
    keep: 'Keep them',
    changed: 'Not saved yet',
    review: 'Review',
    leave: 'There are changes that are not saved. Leave the page? They are kept in this tab.',
    syntax: (line: number, column: number, what: string) => `Line ${line}, column ${column}: ${what}`,
    view: { form: 'Form', raw: 'Text' },
  },

  review: {
    title: (what: string) => `Review: ${what}`,
    effect: 'In effect',
    text: 'In text',
    none: 'Nothing has changed.',
    reason: 'Reason',
    reasonHelp: 'For the history; optional.',
    publish: 'Publish',
    publishing: 'Publishing…',
    done: (revision: number) => `Published as revision ${revision}.`,
    saved: 'Saved.',
    there: 'It is published: this is what the server has now.',
    arrived: (ready: number, all: number) => `${ready} of ${all} gateways have it.`,
    conflict: 'Somebody else has changed it in the meantime.',
    merged: 'These of their changes were taken over:',
    ask: 'These were changed by both. Which one is to stay?',
    mine: 'mine',
    theirs: 'theirs',
    before: 'before',
    absent: 'not there',
    added: 'added',
    removed: 'removed',
    unchanged: 'Nothing would change.',
    effectFailed: 'The effect could not be computed:',
  },

  replay: {
    title: 'Replay',
    none: 'No requests are recorded. The setting gateway.samples_per_second of the gateways turns recording on.',
    recorded: (count: string) => `${count} recorded:`,
    asNew: 'No key has this policy yet. The requests are run as if their callers had it alone, in place of their own rights.',
    run: 'Run against recorded requests',
    again: 'Run again',
    progress: 'Recorded requests that were run',
    done: (done: string, total: string) => `${done} of ${total} requests`,
    failed: (why: string) => `The run failed: ${why}.`,
    refused: 'Would be refused',
    allowed: 'Would be let pass',
    byRule: 'by rule',
    byKey: 'by key',
    reason: 'Reason',
    rule: 'Rule',
    requests: 'Requests',
    examples: 'Examples',
    key: 'Key',
    in: (from: string) => `in ${from}`,
    noKey: 'without a key',
    since: (count: string) => `${count} passed when they were recorded and are refused now already.`,
    skipped: (count: string, why: string) => `${count} not compared: ${why}.`,
    left: (what: string) => `Not part of it: ${what}`,
  },

  secret: {
    once: 'This is shown once. Store it now; it cannot be shown again.',
    stored: 'It is stored',
    save: 'Save',
    print: 'Print',
    leave: 'The secret on this page is shown once. Leave without storing it?',
    copyFailed: 'The browser does not let the page copy. The text is selected: press Ctrl C or ⌘ C.',
    lost: 'It was made, but the answer was lost, so that it cannot be shown. Make a new one in its place.',
    date: 'Made on',
  },

  confirm: {
    type: (name: string) => `Type ${name} to confirm.`,
    gone: 'This goes with it:',
  },

  chart: { table: 'As table', chart: 'As chart', time: 'Time', empty: 'Nothing was counted in this range.' },

  palette: {
    title: 'Search',
    hint: 'Pages, APIs, policies, keys, developers; or paste a request id or a key',
    none: 'Nothing found.',
    go: 'Go to',
    found: 'Found',
    why: (id: string) => `Why was request ${id} refused?`,
    key: 'Find this key. Only its hash is sent.',
    keyByServer: 'Find this key',
    noKey: 'No key has this value.',
    verbs: 'On this page',
  },

  help: {
    title: 'Keyboard shortcuts',
    letters: 'Shortcuts of single letters',
    keys: { palette: 'Search and go', help: 'This help', search: 'Search in the list', back: 'Back', go: (to: string) => `Go to ${to}`, review: 'Review the changes', edit: 'Edit' },
  },

  time: {
    ago: (text: string) => `${text} ago`,
    in: (text: string) => `in ${text}`,
    now: 'now',
  },

  role: {
    needs: (role: string, mine: string) => `Needs ${role}; you are ${mine}.`,
    names: { viewer: 'viewer', approver: 'approver', editor: 'editor', admin: 'admin', gateway: 'gateway' } as Record<string, string>,
  },

  missing: { title: 'Not found', text: 'There is no page at this address.', home: 'To the home page' },
};

export const t = en;
