// The results of a subscription: a bounded list, newest first, that can be paused.
import { fill, h } from './dom';

/** How many results are kept, and how many characters they have together. */
export const mostResults = 500;
export const mostCharacters = 8 << 20;

/** Over how many seconds the rate is taken. */
const rateOver = 5;

export interface Result {
  /** Counted from one. */
  n: number;
  at: number;
  body: string;
}

/** The results that are kept, without a page. Times are in milliseconds. */
export class Backlog {
  count = 0;
  private kept: Result[] = [];
  private characters = 0;
  private held: Result[] | undefined; // what is shown while it is paused
  private seconds: { second: number; count: number }[] = [];
  private since = 0;

  get paused(): boolean {
    return this.held !== undefined;
  }

  /** What is shown, oldest first. */
  get shown(): readonly Result[] {
    return this.held ?? this.kept;
  }

  /** How many results have come since the pause. */
  get behind(): number {
    return this.held ? this.count - this.heldAt : 0;
  }
  private heldAt = 0;

  /** How many of the results are not kept any more. */
  get dropped(): number {
    return this.count - this.kept.length;
  }

  add(body: string, at: number) {
    const second = Math.floor(at / 1000);
    const last = this.seconds.at(-1);
    if (last?.second === second) last.count++;
    else this.seconds = [...this.seconds.slice(-rateOver), { second, count: 1 }];
    if (this.count === 0) this.since = at;
    this.kept.push({ n: ++this.count, at, body });
    this.characters += body.length;
    while (this.kept.length > mostResults || (this.kept.length > 1 && this.characters > mostCharacters)) this.characters -= this.kept.shift()!.body.length;
  }

  /** Results a second, of late. */
  rate(now: number): number {
    const from = now / 1000 - rateOver;
    const came = this.seconds.reduce((sum, one) => (one.second >= from ? sum + one.count : sum), 0);
    const over = Math.min(rateOver, Math.max(1, (now - this.since) / 1000));
    return came / over;
  }

  pause(on: boolean) {
    this.heldAt = this.count;
    this.held = on ? [...this.kept] : undefined;
  }

  clear() {
    [this.count, this.kept, this.characters, this.seconds] = [0, [], 0, []];
    if (this.held) this.pause(true);
  }
}

/** Draws a backlog. Results that come fast are drawn together, ten times a second. */
export class Results {
  readonly element: HTMLElement;
  private backlog = new Backlog();
  private list: HTMLElement;
  private figures = h('span', { class: 'figures' });
  private missing = h('span', { class: 'near' });
  private pauseButton: HTMLButtonElement;
  private rows = new Map<number, HTMLElement>();
  private chosen = 0; // 0: the newest, whatever it is
  private drawing: ReturnType<typeof setTimeout> | undefined;
  private ticking: ReturnType<typeof setInterval> | undefined;

  /** show is called with the body of the result that is chosen. */
  constructor(private show: (body: string) => void) {
    this.list = h('ol', { class: 'list', role: 'listbox', tabindex: '0', 'aria-label': 'Results, newest first' });
    this.list.addEventListener('click', (event) => {
      const row = (event.target as Element).closest<HTMLElement>('[role=option]');
      if (row) this.choose(Number(row.dataset.n));
    });
    this.list.addEventListener('keydown', (event) => this.key(event));
    this.pauseButton = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => this.pause(!this.backlog.paused) }, 'Pause');
    this.element = h(
      'section',
      { class: 'results', 'aria-label': 'Results', hidden: true },
      h('div', { class: 'tools' }, this.pauseButton, h('button', { type: 'button', onclick: () => this.clear() }, 'Clear'), this.figures, this.missing),
      this.list,
    );
  }

  get count(): number {
    return this.backlog.count;
  }

  /** Begins with an empty list. */
  start() {
    this.stop();
    this.pause(false);
    this.clear();
    this.element.hidden = false;
    this.ticking = setInterval(() => this.draw(), 1000); // the rate falls while nothing comes
  }

  /** No more results come. */
  stop() {
    clearInterval(this.ticking);
    this.ticking = undefined;
    if (this.drawing) this.draw();
    this.figured();
  }

  hide() {
    this.stop();
    this.element.hidden = true;
  }

  add(body: string) {
    this.backlog.add(body, Date.now());
    this.drawing ??= setTimeout(() => this.draw(), 100);
  }

  private pause(on: boolean) {
    this.backlog.pause(on);
    this.pauseButton.textContent = on ? 'Resume' : 'Pause';
    this.pauseButton.setAttribute('aria-pressed', String(on));
    this.draw();
  }

  private clear() {
    this.backlog.clear();
    this.chosen = 0;
    this.draw();
    this.marked();
    this.show('');
  }

  private draw() {
    clearTimeout(this.drawing);
    this.drawing = undefined;
    const { shown } = this.backlog;
    const oldest = shown[0]?.n ?? Infinity;
    for (const [n, row] of this.rows) {
      if (n >= oldest) continue;
      row.remove();
      this.rows.delete(n);
    }
    let added = false;
    for (const result of shown) {
      if (this.rows.has(result.n)) continue;
      const row = rowOf(result);
      this.rows.set(result.n, row);
      this.list.prepend(row);
      added = true;
    }
    if (this.chosen > 0 && this.chosen < oldest) this.chosen = 0;
    if (added && this.chosen === 0) this.marked();
    this.figured();
  }

  private figured() {
    const { count, behind, dropped, paused } = this.backlog;
    const rate = this.ticking ? ` · ${this.backlog.rate(Date.now()).toFixed(1)}/s` : '';
    fill(this.figures, `${count} ${count === 1 ? 'result' : 'results'}${rate}${paused ? ` · paused, ${behind} not shown` : ''}`);
    fill(this.missing, dropped > 0 ? `The oldest ${dropped} are not kept.` : '');
  }

  /** Marks the chosen row and shows its result. */
  private marked() {
    const { shown } = this.backlog;
    const result = shown.find((one) => one.n === this.chosen) ?? shown.at(-1);
    for (const row of this.list.querySelectorAll('[aria-selected=true]')) row.setAttribute('aria-selected', 'false');
    if (!result) return this.list.removeAttribute('aria-activedescendant');
    const row = this.rows.get(result.n)!;
    row.setAttribute('aria-selected', 'true');
    this.list.setAttribute('aria-activedescendant', row.id);
    this.show(result.body);
  }

  /** Chooses a result; the newest is followed by those that come. */
  private choose(n: number) {
    const { shown } = this.backlog;
    this.chosen = n >= (shown.at(-1)?.n ?? 0) ? 0 : Math.max(n, shown[0]!.n);
    this.marked();
    this.list.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }

  private key(event: KeyboardEvent) {
    const { shown } = this.backlog;
    const newest = shown.at(-1)?.n ?? 0;
    const at = this.chosen || newest;
    const to = { ArrowDown: at - 1, ArrowUp: at + 1, Home: newest, End: 1 }[event.key];
    if (to === undefined || newest === 0) return;
    event.preventDefault();
    this.choose(to);
  }
}

function rowOf({ n, at, body }: Result): HTMLElement {
  const row = h('li', { role: 'option', id: `result-${n}`, 'aria-selected': 'false', 'data-n': n }, h('span', { class: 'muted' }, String(n)), ' ', h('span', { class: 'muted' }, timeOf(at)), ' ', h('span', { class: 'preview' }, previewOf(body)));
  return row;
}

/** The local time to the millisecond. */
function timeOf(at: number): string {
  const time = new Date(at);
  return `${time.toLocaleTimeString('en-GB')}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}

/** The data of a result in one line; all of it if there are errors. */
function previewOf(body: string): string {
  const most = 200;
  try {
    const value = JSON.parse(body) as { data?: unknown; errors?: unknown };
    if (value.errors === undefined && value.data !== undefined) return JSON.stringify(value.data).slice(0, most);
  } catch {
    // It is shown as it came.
  }
  return body.slice(0, most);
}
