// Texts of the list of event streams.
import { number } from '../../text/en';

export const text = {
  title: 'Streams',
  note: 'What gateways run of the event streams, read again every 5 seconds.',
  label: 'Event streams',
  none: 'No gateway runs a stream',
  noneText: 'An API of event streams takes messages in on one side and gives them out on another: HTTP, WebSocket, server-sent events, webhooks and message brokers.',
  create: 'New API of event streams',
  noMatch: 'No stream matches',
  clear: 'Clear filters',
  silent: (gateways: string[]) => `No answer in time from ${gateways.join(', ')}. What runs there is missing.`,
  filterAPI: 'Id of the API',
  filterPhase: 'State',
  anyPhase: 'any',
  apply: 'Apply',
  first: 'First page',
  more: 'Next page',
  columns: { stream: 'Stream', api: 'API', phase: 'State', messages: 'In / out', flight: 'In flight', error: 'Last error', gateways: 'Gateways' },
  messages: (received: number, sent: number) => `${number(received)} / ${number(sent)}`,
  deleted: 'deleted',
  unnamed: '(no name)',
};
