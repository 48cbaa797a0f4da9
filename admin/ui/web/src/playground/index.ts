// The playground: editors, tabs, history, documentation, a meter of the limits, and the
// answer, or the results of a subscription, with the reason of a refusal. It draws itself into a shadow root, without a
// framework, so that the management UI, the portal and the public page share it.
import { buildSchema, type GraphQLSchema, parse, print } from 'graphql';
import { Docs } from './docs';
import { fill, h } from './dom';
import { Editor } from './editor';
import { Kept, type Tab } from './kept';
import { isSubscription, type Limits, measure, noLimits, operationsOf } from './meter';
import { Results } from './results';
import { style } from './style';
import type { Answer, Call, End, Protocol, Step, Transport } from './transport';

export { noLimits } from './meter';
export type { Limits } from './meter';
export type { Answer, Call, Explanation, Transport } from './transport';

/** What the caller may use: the schema, cut to that, and the limits on operations. */
export interface Visible {
  /** In SDL; undefined: there is none to show, and why says so. */
  schema?: string | GraphQLSchema;
  why?: string;
  limits?: Limits;
}

export interface Options {
  /** Tells the tabs and the history of this API apart. */
  name: string;
  transport: Transport;
  visible: (signal: AbortSignal) => Promise<Visible>;
  /** The first headers, as text of a JSON object. */
  headers?: string;
  /** An operation that is opened in a tab of its own. */
  query?: string;
  /** Where an explanation of a refusal is found by its request id. */
  whyLink?: (requestID: string) => string;
}

export interface Playground {
  /** Reads anew what the caller may use, after the caller or the headers have changed. */
  refresh(): void;
  /** The headers as they stand. */
  headers(): Record<string, string>;
  destroy(): void;
}

const welcome = '# Write a query, and run it with Ctrl or ⌘ and Enter.\n# Ctrl and Space completes.\n\nquery {\n  __typename\n}\n';

export function mount(host: HTMLElement, options: Options): Playground {
  return new View(host, options);
}

class View implements Playground {
  private root: ShadowRoot;
  private kept: Kept;
  private tabs: Tab[];
  private at = 0;
  private schema: GraphQLSchema | undefined;
  private why = 'The schema is being read.';
  private limits = noLimits;
  private running: AbortController | undefined;
  private reading: AbortController | undefined;

  private strip = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Operations' });
  private run: HTMLButtonElement;
  private operation = h('select', { 'aria-label': 'Operation', hidden: true });
  private protocol = h('select', { 'aria-label': 'Transport', hidden: true });
  private results = new Results((body) => (this.answer.value = pretty(body)));
  private meter = h('span', { class: 'meter', role: 'status', 'aria-live': 'polite' });
  private status = h('div', { class: 'status', role: 'status', 'aria-live': 'polite' }, h('span', { class: 'muted' }, 'The answer appears here.'));
  private refusal = h('div', { class: 'refusal', hidden: true });
  private beside = h('div', {});
  private pastPane = h('div', { class: 'past', hidden: true });
  private docs: Docs;
  private query: Editor;
  private variables: Editor;
  private head: Editor;
  private answer: Editor;

  constructor(
    host: HTMLElement,
    private o: Options,
  ) {
    this.kept = new Kept(o.name);
    this.tabs = this.kept.tabs();
    const opened = o.query && !this.tabs.some((one) => one.query === o.query) ? o.query : '';
    if (opened) this.tabs.push({ query: opened, variables: '' });
    if (this.tabs.length === 0) this.tabs = [{ query: welcome, variables: '' }];
    this.root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    this.root.adoptedStyleSheets = [sheet];
    this.docs = new Docs(() => this.why);
    this.docs.element.hidden = true;
    this.run = h('button', { type: 'button', class: 'run', onclick: () => this.send() }, 'Run');

    const box = () => h('div', { class: 'editor' });
    const [queryBox, variablesBox, headersBox, answerBox] = [box(), box(), box(), box()];
    queryBox.append(this.pastPane);
    const panes = h(
      'div',
      { class: 'panes' },
      h('div', { class: 'ask' }, queryBox, this.besides(variablesBox, headersBox), h('div', { class: 'editor' }, variablesBox, headersBox)),
      h('div', { class: 'answer' }, h('div', {}, this.status, this.refusal), this.beside, this.results.element, answerBox),
      this.docs.element,
    );
    variablesBox.style.height = headersBox.style.height = '100%';
    const toggle = (label: string, act: (on: boolean) => void) => {
      const button: HTMLButtonElement = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => {
        const on = button.getAttribute('aria-pressed') !== 'true';
        button.setAttribute('aria-pressed', String(on));
        act(on);
      } }, label);
      return button;
    };
    this.historyButton = toggle('History', (on) => this.showPast(on));
    fill(
      this.root as unknown as Element,
      h(
        'div',
        { class: 'all' },
        h(
          'div',
          { class: 'bar' },
          this.run,
          this.operation,
          this.protocol,
          h('button', { type: 'button', onclick: () => this.prettify() }, 'Prettify'),
          this.historyButton,
          h('span', { class: 'space' }),
          this.meter,
          toggle('Docs', (on) => {
            this.docs.element.hidden = !on;
            panes.classList.toggle('with-docs', on);
            if (on) this.docs.draw();
          }),
        ),
        this.strip,
        panes,
      ),
    );
    this.operation.addEventListener('change', () => this.measured());
    const protocols = o.transport.protocols ?? [];
    const usual = protocols.find((one) => one === this.kept.protocol()) ?? protocols[0];
    fill(this.protocol, ...protocols.map((one) => h('option', { value: one, selected: one === usual }, protocolNames[one])));
    this.protocol.addEventListener('change', () => this.kept.keepProtocol(this.protocol.value));
    const editor = (into: HTMLElement, label: string, more: Partial<ConstructorParameters<typeof Editor>[2]>) =>
      new Editor(this.root, into, { label, language: 'json', onRun: () => this.send(), ...more });
    this.query = editor(queryBox, 'Query', { language: 'graphql', onChange: () => this.changed(), onDocs: (type) => this.docs.open(type) });
    this.variables = editor(variablesBox, 'Variables', { hint: '{ "name": "value" }', onChange: () => this.changed() });
    this.head = editor(headersBox, 'Headers', { hint: '{ "Authorization": "…" }', value: o.headers ?? '' });
    this.answer = editor(answerBox, 'Answer', { readOnly: true });
    this.open(Math.max(0, this.tabs.findIndex((one) => one.query === o.query)));
    this.refresh();
  }

  private historyButton: HTMLButtonElement;

  private besides(variables: HTMLElement, headers: HTMLElement): HTMLElement {
    headers.hidden = true;
    const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Beside the query' });
    const boxes = [variables, headers];
    const buttons = ['Variables', 'Headers'].map((label, i) =>
      h('button', { type: 'button', role: 'tab', 'aria-selected': String(i === 0), onclick: () => {
        boxes.forEach((box, k) => (box.hidden = k !== i));
        buttons.forEach((one, k) => one.setAttribute('aria-selected', String(k === i)));
      } }, label),
    );
    arrows(list, buttons);
    list.append(...buttons);
    return list;
  }

  refresh() {
    this.reading?.abort();
    const reading = (this.reading = new AbortController());
    this.o.visible(reading.signal).then(
      (visible) => {
        if (reading.signal.aborted) return;
        this.limits = visible.limits ?? noLimits;
        this.why = visible.why ?? 'The caller may use nothing of the schema.';
        try {
          this.schema = typeof visible.schema === 'string' ? (visible.schema ? buildSchema(visible.schema) : undefined) : visible.schema;
        } catch (problem) {
          this.schema = undefined;
          this.why = `The schema cannot be read: ${problem instanceof Error ? problem.message : String(problem)}`;
        }
        this.schemaCame();
      },
      (problem: unknown) => {
        if (reading.signal.aborted) return;
        this.schema = undefined;
        this.why = `The schema could not be read: ${problem instanceof Error ? problem.message : String(problem)}`;
        this.schemaCame();
      },
    );
  }

  private schemaCame() {
    this.query.schema(this.schema);
    this.docs.show(this.schema);
    this.measured();
  }

  headers(): Record<string, string> {
    const parsed = asObject(this.head.value);
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(parsed ?? {})) if (typeof value === 'string') headers[name] = value;
    return headers;
  }

  destroy() {
    this.running?.abort();
    this.reading?.abort();
    this.results.stop();
    for (const one of [this.query, this.variables, this.head, this.answer]) one.destroy();
    this.root.replaceChildren();
  }

  private open(at: number) {
    this.at = at;
    const tab = this.tabs[at]!;
    this.query.value = tab.query;
    this.variables.value = tab.variables;
    this.drawTabs();
    this.measured();
  }

  private drawTabs() {
    const buttons = this.tabs.map((tab, i) =>
      h('button', { type: 'button', role: 'tab', 'aria-selected': String(i === this.at), onclick: () => this.open(i) }, titleOf(tab, i)),
    );
    arrows(this.strip, buttons);
    fill(this.strip, ...buttons);
    this.moreTabs();
  }

  /** What adds and closes tabs stands behind the strip: a tab list holds tabs alone. */
  private moreTabs() {
    const add = h('button', { type: 'button', class: 'tab-verb', 'aria-label': 'New tab', onclick: () => {
      this.tabs.push({ query: '', variables: '' });
      this.open(this.tabs.length - 1);
      this.query.focus();
    } }, '+');
    const close = h('button', { type: 'button', class: 'tab-verb', 'aria-label': 'Close this tab', onclick: () => {
      this.tabs.splice(this.at, 1);
      if (this.tabs.length === 0) this.tabs.push({ query: '', variables: '' });
      this.open(Math.min(this.at, this.tabs.length - 1));
      this.kept.keepTabs(this.tabs);
    } }, '×');
    const bar = this.run.parentElement!;
    for (const old of bar.querySelectorAll('.tab-verb')) old.remove();
    this.historyButton.after(add, close);
  }

  private changed() {
    const tab = this.tabs[this.at]!;
    if (tab.query === this.query.value && tab.variables === this.variables.value) return;
    [tab.query, tab.variables] = [this.query.value, this.variables.value];
    this.kept.keepTabs(this.tabs);
    const shown = this.strip.children[this.at];
    if (shown) shown.textContent = titleOf(tab, this.at);
    this.measured();
  }

  private measured() {
    const text = this.query.value;
    const names = operationsOf(text);
    const chosen = names.includes(this.operation.value) ? this.operation.value : (names[0] ?? '');
    fill(this.operation, ...names.map((name) => h('option', { value: name, selected: name === chosen }, name || '(unnamed)')));
    this.operation.hidden = names.length < 2;
    this.protocol.hidden = this.protocol.options.length === 0 || !isSubscription(text, chosen);
    const m = measure(text, chosen, asObject(this.variables.value), this.schema, this.limits);
    if (!m) return fill(this.meter);
    fill(this.meter, figure('depth', m.depth, m.maxDepth), this.schema && m.cost > 0 ? ' · ' : '', this.schema && m.cost > 0 ? figure('cost', m.cost, m.maxCost) : '');
  }

  private prettify() {
    try {
      this.query.value = print(parse(this.query.value));
      const variables = asObject(this.variables.value);
      if (variables) this.variables.value = JSON.stringify(variables, null, 2);
    } catch (problem) {
      this.say('bad', `This cannot be parsed: ${problem instanceof Error ? problem.message : String(problem)}`);
    }
  }

  private async send() {
    if (this.running) return this.running.abort();
    const [query, variables] = [this.query.value, this.variables.value.trim()];
    const given = variables ? asObject(variables) : undefined;
    if (variables && !given) return this.say('bad', 'The variables are not a JSON object.');
    if (this.head.value.trim() && !asObject(this.head.value)) return this.say('bad', 'The headers are not a JSON object of texts.');
    const running = (this.running = new AbortController());
    this.run.textContent = 'Stop';
    this.refusal.hidden = true;
    fill(this.beside);
    const call: Call = { query, variables: given, operationName: this.operation.value || undefined, headers: this.headers(), signal: running.signal };
    const came = (answer: Answer) => {
      this.show(answer);
      this.kept.add({ query, variables, at: Date.now(), status: answer.status });
    };
    try {
      if (isSubscription(query, this.operation.value)) await this.follow(call, came);
      else await this.ask(call, came);
    } catch (problem) {
      this.say('bad', running.signal.aborted ? 'Stopped.' : `There is no answer: ${problem instanceof Error ? problem.message : String(problem)}`);
    } finally {
      this.results.stop();
      this.running = undefined;
      this.run.textContent = 'Run';
    }
  }

  private async ask(call: Call, came: (answer: Answer) => void) {
    this.results.hide();
    this.say('muted', 'Waiting for the answer…');
    for await (const answer of this.o.transport.send(call)) came(answer);
  }

  /** Runs a subscription until it ends, or is stopped. */
  private async follow(call: Call, came: (answer: Answer) => void) {
    this.results.start();
    this.say('muted', 'Waiting for the subscription to begin…');
    const protocol = (this.protocol.value || 'sse') as Protocol;
    const by = this.protocol.options.length > 0 ? `over ${protocolNames[protocol]}` : '';
    for await (const event of this.o.transport.subscribe(call, protocol)) {
      if (event.kind === 'answer') {
        this.results.hide();
        came(event.answer);
      } else if (event.kind === 'open') {
        came(event.answer ?? { status: 101, headers: [], body: '' });
        this.live(event.answer, by);
      } else if (event.kind === 'next') this.results.add(event.body);
      else this.ended(event.end);
    }
    if (call.signal.aborted) this.say('', 'Stopped.');
  }

  /** Says that a subscription runs. */
  private live(answer: Answer | undefined, by: string) {
    const facts = [h('strong', { class: 'good' }, 'Live'), by ? h('span', {}, by) : ''];
    if (answer?.counted !== undefined) facts.push(h('span', { class: 'muted' }, answer.counted ? 'counted' : 'not counted'));
    if (answer?.requestID) facts.push(h('span', { class: 'muted mono' }, answer.requestID));
    fill(this.status, ...facts);
    if (!answer?.headers.length) fill(this.beside);
  }

  /** Says how a subscription ended. */
  private ended({ how, code, reason, errors }: End) {
    if (how === 'completed') return this.say('good', 'Completed.');
    if (how === 'closed') return fill(this.status, h('strong', { class: 'bad' }, code ? `Closed with code ${code}` : 'Closed'), reason ? h('span', {}, reason) : '');
    fill(this.status, h('strong', { class: 'bad' }, 'Refused'), h('span', {}, this.results.count > 0 ? 'after the results below' : ''));
    const list = errorsOf(errors);
    this.refusal.hidden = list.length === 0;
    fill(this.refusal, h('ul', {}, ...list.map((one) => h('li', {}, one))));
    if (this.results.count > 0) return;
    this.results.hide();
    this.answer.value = pretty(errors ?? '');
  }

  private show(answer: Answer) {
    this.answer.value = pretty(answer.body);
    const facts: (Node | string)[] = [h('strong', { class: answer.status < 400 ? 'good' : 'bad' }, String(answer.status))];
    if (answer.tookMS !== undefined) facts.push(h('span', {}, duration(answer.tookMS)));
    if (answer.upstreamMS) facts.push(h('span', { class: 'muted' }, `${duration(answer.upstreamMS)} upstream`));
    if (answer.counted !== undefined) facts.push(h('span', { class: 'muted' }, answer.counted ? 'counted' : 'not counted'));
    if (answer.cut) facts.push(h('span', { class: 'near' }, 'only the beginning is shown'));
    if (answer.requestID) facts.push(h('span', { class: 'muted mono' }, answer.requestID));
    fill(this.status, ...facts);
    const list = h('dl', {}, ...answer.headers.flatMap(([name, value]) => [h('dt', { class: 'muted' }, name), h('dd', {}, value)]));
    fill(this.beside, h('details', {}, h('summary', {}, `Headers (${answer.headers.length})`), list));
    this.refused(answer);
  }

  private refused(answer: Answer) {
    const { steps = [], outcome } = answer.explanation ?? {};
    const failed = steps.find((one) => one.result === 'fail');
    this.refusal.hidden = !failed;
    if (!failed) return;
    const link = answer.requestID && this.o.whyLink ? h('a', { href: this.o.whyLink(answer.requestID) }, 'Why') : '';
    fill(
      this.refusal,
      h('p', {}, h('strong', {}, outcome?.reason ?? failed.stage), failed.said ? `: ${failed.said}` : '', ' ', link),
      h('ul', {}, ...(failed.facts ?? []).filter((one) => one.seen).map((one) => h('li', {}, h('code', {}, `${one.rule} ${one.value}`), `, and the call has ${one.seen}`, one.from ? `; set by ${one.from}` : ''))),
      outcome?.fix ? h('p', {}, `To let it pass: ${outcome.fix}`) : '',
      h('ol', {}, ...steps.map((one: Step) => h('li', { class: one.result === 'fail' ? 'bad' : '' }, `${marks[one.result] ?? '·'} ${one.stage}${one.said ? ` — ${one.said}` : ''}`))),
    );
  }

  private say(kind: string, text: string) {
    fill(this.status, h('span', { class: kind }, text));
  }

  private showPast(on: boolean) {
    this.pastPane.hidden = !on;
    if (!on) return;
    const past = this.kept.past();
    const shut = () => this.historyButton.click();
    fill(
      this.pastPane,
      h('div', {}, h('strong', {}, 'History'), ' ', h('button', { type: 'button', onclick: () => (this.kept.forget(), this.showPast(true)) }, 'Forget all'), ' ', h('button', { type: 'button', onclick: shut }, 'Close')),
      past.length === 0 ? h('p', { class: 'muted' }, 'What you run is listed here, in this browser alone. Headers are not kept.') : '',
      h('ul', {}, ...past.map((one) => h('li', {}, h('button', { type: 'button', title: one.query, onclick: () => {
        this.tabs.push({ query: one.query, variables: one.variables });
        this.open(this.tabs.length - 1);
        shut();
      } }, `${new Date(one.at).toLocaleString()}  ${one.status}  ${one.query.replace(/\s+/g, ' ')}`)))),
    );
  }
}

const marks: Record<string, string> = { ok: '✓', fail: '✗', answered: '✓', untold: '?' };

const protocolNames: Record<Protocol, string> = { 'graphql-transport-ws': 'WebSocket', 'graphql-ws': 'WebSocket, older protocol', sse: 'SSE' };

/** The messages of a list of errors. */
function errorsOf(text: string | undefined): string[] {
  const list = JSON.parse(text ?? '[]') as { message?: unknown }[];
  return list.map((one) => (typeof one?.message === 'string' ? one.message : JSON.stringify(one)));
}

function figure(what: string, seen: number, most: number): HTMLElement {
  const kind = most > 0 && seen > most ? 'bad' : most > 0 && seen >= most * 0.8 ? 'near' : '';
  return h('span', { class: kind }, most > 0 ? `${what} ${seen} of ${most}` : `${what} ${seen}`, most > 0 && seen > most ? ' – too much' : '');
}

function duration(ms: number): string {
  return ms < 1 ? 'under 1 ms' : `${Math.round(ms)} ms`;
}

function titleOf(tab: Tab, i: number): string {
  return /\b(?:query|mutation|subscription)\s+(\w+)/.exec(tab.query)?.[1] ?? `Query ${i + 1}`;
}

function asObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

/** Arrow keys move among tabs, as their role promises. */
function arrows(list: HTMLElement, buttons: HTMLButtonElement[]) {
  list.onkeydown = (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const at = buttons.indexOf((list.getRootNode() as ShadowRoot).activeElement as HTMLButtonElement);
    if (step === 0 || at < 0) return;
    const next = (at + step + buttons.length) % buttons.length;
    buttons[next]!.click();
    (list.children[next] as HTMLElement).focus(); // the click may have drawn the tabs anew
  };
}
