// The plan of a GraphQL operation as a graph: which data source is asked for what, and what
// waits for what.

/** A rule of an explanation, as far as plans are concerned. */
export interface PlanFact {
  rule: string;
  value: string;
  seen?: string;
  from?: string;
}

/** A request to a data source. */
export interface Fetch {
  /** From 1, in the order of the plan. */
  n: number;
  source: string;
  /** The places of its values in the answer: "user.todos", or several with commas; '' for the answer itself. */
  at: string;
  /** What a GraphQL service is sent; '' for others. */
  operation: string;
  /** The requests that it waits for, by their numbers. */
  after: number[];
  /** How many requests are before it, one after the other. */
  level: number;
}

const named = /^(?:(?:data source|subgraph) (.+)|(the schema))$/;
const inStep = /^step (\d+)$/;

/**
 * The requests that an explanation lists; none if it has no plan. Those that say their step
 * wait for all of the step before; otherwise the places of values tell.
 */
export function planOf(facts: PlanFact[] | undefined): Fetch[] {
  const all: Fetch[] = [];
  for (const fact of facts ?? []) {
    const [, source, schema] = named.exec(fact.rule) ?? [];
    const name = source ?? schema;
    if (name === undefined) continue;
    const step = inStep.exec(fact.from ?? '')?.[1];
    const before = step === undefined ? above(all, fact.value) : undefined;
    const level = step !== undefined ? Number(step) - 1 : before ? before.level + 1 : 0;
    const after = step === undefined ? (before ? [before.n] : []) : all.filter((one) => one.level === level - 1).map((one) => one.n);
    all.push({ n: all.length + 1, source: name, at: fact.value, operation: fact.seen ?? '', after, level });
  }
  return all;
}

/**
 * The request whose values hold those of a place. Root fields, which have one name, wait for
 * no request; those below them wait for the one that has the closest value above.
 */
function above(all: Fetch[], at: string): Fetch | undefined {
  if (!at.includes('.')) return undefined;
  const holds = (one: Fetch) => one.at === '' || at.startsWith(`${one.at}.`);
  return all.filter(holds).reduce<Fetch | undefined>((best, one) => (best && best.at.length >= one.at.length ? best : one), undefined);
}

export interface Box {
  x: number;
  y: number;
}

export interface Drawing {
  width: number;
  height: number;
  /** Where the operation and the requests are, by their numbers; 0 is the operation. */
  boxes: Map<number, Box>;
  lines: string[];
}

export const box = { width: 196, height: 52 };
const gap = { across: 44, along: 16, indent: 24 };

/** Places requests beside each other where they need not wait; on narrow screens below each other, indented. */
export function draw(fetches: Fetch[], narrow: boolean): Drawing {
  const boxes = new Map<number, Box>([[0, { x: 0, y: 0 }]]);
  const filled = new Map<number, number>();
  fetches.forEach((one, i) => {
    const row = filled.get(one.level) ?? 0;
    filled.set(one.level, row + 1);
    boxes.set(one.n, narrow ? { x: (one.level + 1) * gap.indent, y: (i + 1) * (box.height + gap.along) } : { x: (one.level + 1) * (box.width + gap.across), y: row * (box.height + gap.along) });
  });
  const lines = fetches.flatMap((one) => {
    const before = one.after.length > 0 ? one.after : [0];
    return (narrow ? before.slice(-1) : before).map((from) => line(boxes.get(from)!, boxes.get(one.n)!, narrow));
  });
  const all = [...boxes.values()];
  return { width: Math.max(...all.map((one) => one.x)) + box.width, height: Math.max(...all.map((one) => one.y)) + box.height, boxes, lines };
}

function line(from: Box, to: Box, narrow: boolean): string {
  const y = to.y + box.height / 2;
  if (narrow) return `M${from.x + gap.indent / 2} ${from.y + box.height}V${y}H${to.x}`;
  const [x, middle] = [from.x + box.width, to.x - gap.across / 2];
  return `M${x} ${from.y + box.height / 2}H${middle}V${y}H${to.x}`;
}
