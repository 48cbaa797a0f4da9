import { plural } from '../../text/en';

const list = new Intl.ListFormat('en');

export const text = {
  title: 'Query plan',
  operation: 'Operation',
  of: (requests: number, sources: number) => `${plural(requests, 'request', 'requests')} to ${plural(sources, 'source', 'sources')}`,
  picture: 'Query plan as a picture',
  list: 'As a list',
  whole: 'the answer',
  fetch: (source: string, at: string, after: number[]) => `${source} for ${list.format((at || 'the answer').split(', '))}, ${after.length > 0 ? `after ${after.length > 1 ? 'requests' : 'request'} ${list.format(after.map(String))}` : 'at once'}`,
};
