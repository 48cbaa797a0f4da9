/** One problem of what was sent, with its place. */
export interface Problem {
  /** Where: names separated by dots, as the server writes them; '' for the whole. */
  path: string;
  message: string;
  line?: number;
  column?: number;
}

/** A call that did not succeed. */
export class Failure extends Error {
  constructor(
    /** Status of the answer; 0 if there was none. */
    readonly status: number,
    /** The server's own words. */
    message: string,
    readonly method: string,
    readonly path: string,
    readonly problems: Problem[] = [],
    readonly requestID = '',
    /** Seconds to wait before another try; 0: not said. */
    readonly retryAfter = 0,
    /** Entity tag of the object as it is now, on 409. */
    readonly etag = '',
    /** When the answer came, in ms: Retry-After counts from here. */
    readonly at = Date.now(),
  ) {
    super(message);
    this.name = 'Failure';
  }
}

interface Envelope {
  Message?: string;
  message?: string;
  Errors?: string[];
  Problems?: Problem[];
}

/** Splits "proxy.target_url: must be a URL" into its path and message. */
export function problemOf(text: string): Problem {
  const found = /^([A-Za-z_$][\w$.[\]"*/{}-]*): (.*)$/s.exec(text);
  const problem: Problem = found ? { path: found[1]!, message: found[2]! } : { path: '', message: text };
  const at = /\bline (\d+)(?:,? column (\d+))?/.exec(problem.message);
  if (at) {
    problem.line = Number(at[1]);
    if (at[2]) problem.column = Number(at[2]);
  }
  return problem;
}

/** Reads the failure out of an answer. */
export async function failureOf(method: string, path: string, answer: Response): Promise<Failure> {
  const text = await answer.text().catch(() => '');
  let said: Envelope = {};
  try {
    said = JSON.parse(text) as Envelope;
  } catch {
    // not of the admin: a proxy answered
  }
  const problems = said.Problems ?? (said.Errors ?? []).map(problemOf);
  return new Failure(
    answer.status,
    said.Message || said.message || answer.statusText || `The server answered with status ${answer.status}.`,
    method,
    path,
    problems,
    answer.headers.get('X-Request-Id') ?? '',
    secondsOf(answer.headers.get('Retry-After')),
    answer.headers.get('ETag') ?? '',
  );
}

function secondsOf(text: string | null): number {
  if (!text) return 0;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, Math.ceil(seconds));
  const date = Date.parse(text);
  return Number.isNaN(date) ? 0 : Math.max(0, Math.ceil((date - Date.now()) / 1000));
}
