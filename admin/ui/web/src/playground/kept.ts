// Tabs and history, kept in the browser. Headers are not: they may hold credentials.

export interface Tab {
  query: string;
  variables: string;
}

export interface Past extends Tab {
  at: number;
  status: number;
}

const mostTabs = 20;
const mostPast = 50;
const mostBytes = 200_000; // of one text

export class Kept {
  /** name tells the playgrounds of one origin apart. */
  constructor(private name: string) {}

  tabs(): Tab[] {
    return this.read('tabs').filter(isTab).slice(0, mostTabs);
  }

  keepTabs(tabs: Tab[]) {
    this.write('tabs', tabs.slice(0, mostTabs).map(({ query, variables }) => ({ query, variables })));
  }

  past(): Past[] {
    return this.read('past').filter((one): one is Past => isTab(one) && typeof (one as Past).at === 'number');
  }

  add(past: Past) {
    const others = this.past().filter((one) => one.query !== past.query || one.variables !== past.variables);
    this.write('past', [past, ...others].slice(0, mostPast));
  }

  forget() {
    this.write('past', []);
  }

  /** The transport that was chosen last, on any page of this origin; "" for none. */
  protocol(): string {
    try {
      return localStorage.getItem('playground:transport') ?? '';
    } catch {
      return '';
    }
  }

  keepProtocol(protocol: string) {
    try {
      localStorage.setItem('playground:transport', protocol);
    } catch {
      // Storage is off or full: the first is chosen the next time.
    }
  }

  private read(what: string): unknown[] {
    try {
      const found: unknown = JSON.parse(localStorage.getItem(`playground:${this.name}:${what}`) ?? '[]');
      return Array.isArray(found) ? found : [];
    } catch {
      return []; // storage is off, or was written by something else
    }
  }

  private write(what: string, value: Tab[]) {
    try {
      const small = value.filter((one) => one.query.length + one.variables.length < mostBytes);
      localStorage.setItem(`playground:${this.name}:${what}`, JSON.stringify(small));
    } catch {
      // Storage is off or full: nothing is kept.
    }
  }
}

function isTab(one: unknown): one is Tab {
  return typeof one === 'object' && one !== null && typeof (one as Tab).query === 'string' && typeof (one as Tab).variables === 'string';
}
