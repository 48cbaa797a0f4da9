// A graphql-ws server that publishes one message to all subscribers: node events.mjs PORT BYTES
import { createServer } from 'node:http'
import { buildSchema } from 'graphql'
import { useServer } from 'graphql-ws/use/ws'
import { WebSocketServer } from 'ws'

const [port, bytes] = process.argv.slice(2).map(Number)
const text = 'x'.repeat(bytes)
const listeners = new Set()
let sent = 0

// events is the stream of one subscriber.
function events() {
  const waiting = []
  let wake = null
  const listener = (event) => {
    waiting.push(event)
    wake?.()
  }
  listeners.add(listener)
  let over = false
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      while (waiting.length === 0 && !over) {
        await new Promise((resolve) => {
          wake = resolve
        })
      }
      return over ? { done: true, value: undefined } : { done: false, value: { event: waiting.shift() } }
    },
    async return() {
      over = true
      listeners.delete(listener)
      wake?.()
      return { done: true, value: undefined }
    },
  }
}

const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/publish') {
    sent++
    for (const listener of listeners) listener({ n: sent, text })
  }
  response.end(String(listeners.size))
})
const schema = buildSchema('type Query { a: Int } type Subscription { event: Event } type Event { n: Int text: String }')
useServer({ schema, roots: { subscription: { event: events } } }, new WebSocketServer({ server }))
server.listen({ port, host: '127.0.0.1', backlog: 4096 })
