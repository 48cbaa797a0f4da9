// Streams to begin with. All are complete but for addresses.

export const templates: { id: string; label: string; make: (name: string) => Record<string, unknown> }[] = [
  {
    id: 'sse',
    label: 'HTTP to event stream, inside the gateway',
    make: (name) => ({
      input: { http_server: { path: `/${name}`, allowed_verbs: ['POST'] } },
      pipeline: { processors: [{ mapping: 'root = this\nroot.received_at = now()' }] },
      output: { http_server: { path: `/${name}` } },
    }),
  },
  {
    id: 'publish',
    label: 'HTTP to a message broker',
    make: (name) => ({
      input: { http_server: { path: `/${name}`, allowed_verbs: ['POST'] } },
      output: { msgbroker: { addresses: ['amqp://broker.example.com:5672'], topic: name } },
    }),
  },
  {
    id: 'consume',
    label: 'Message broker to event stream',
    make: (name) => ({
      input: { msgbroker: { addresses: ['amqp://broker.example.com:5672'], topics: [name], consumer_group: name } },
      output: { http_server: { path: `/${name}` } },
    }),
  },
  {
    id: 'poll',
    label: 'Polled address to webhook',
    make: () => ({
      input: { http_client: { url: 'https://api.example.com/latest', rate_limit: '10s' } },
      pipeline: { processors: [{ mapping: 'root.event = "polled"\nroot.data = this' }] },
      output: { http_client: { url: 'https://hooks.example.com/events', verb: 'POST' } },
    }),
  },
  {
    id: 'fanout',
    label: 'HTTP to several outputs',
    make: (name) => ({
      input: { http_server: { path: `/${name}`, allowed_verbs: ['POST'] } },
      output: {
        broker: {
          pattern: 'fan_out',
          outputs: [{ msgbroker: { topic: name } }, { http_client: { url: 'https://hooks.example.com/events', verb: 'POST' } }],
        },
      },
    }),
  },
  {
    id: 'socket',
    label: 'WebSocket to WebSocket',
    make: (name) => ({
      input: { websocket_server: { path: `/${name}` } },
      output: { websocket_server: { path: `/${name}` } },
    }),
  },
];
