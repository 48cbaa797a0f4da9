package live

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

// totals are the numbers of an API.
type totals struct {
	api string
	by  [2]numbers // by protocol
}

// numbers are those of connections that have ended, but for opened.
type numbers struct {
	opened, in, out uint64
	closed          map[int]uint64 // by close code; otherCode: any other
}

// A client may close with any code. Those that are not among these are counted as one.
var codes = map[int]string{
	CloseNormal: "1000", CloseGoingAway: "1001", CloseProtocol: "1002", CloseAbnormal: "1006", CloseInvalidText: "1007", CloseTooBig: "1009",
	CloseInternal: "1011", CloseRestart: "1012", CloseTryAgain: "1013",
	CloseBadMessage: "4400", CloseUnauthorized: "4401", CloseForbidden: "4403", CloseInitTimeout: "4408", CloseDuplicate: "4409", CloseSecondInit: "4429", CloseSlowConsumer: "4500",
}

const otherCode = 0

// ended counts a connection that has ended.
func (n *numbers) ended(c *Conn, e *Ending) {
	code := e.Code
	if codes[code] == "" || e.ByClient && code >= CloseBadMessage {
		code = otherCode
	}
	if n.closed == nil {
		n.closed = make(map[int]uint64)
	}
	n.closed[code]++
	n.in += c.tally.in.Load()
	n.out += c.tally.out.Load()
}

var (
	openConnections = metrics.Describe("ws_connections", "GraphQL connections that are open.", "api", "protocol")
	openOperations  = metrics.Describe("ws_operations", "Operations that are active on GraphQL connections.", "api", "protocol")
	subscriptions   = metrics.Describe("subscriptions", "Subscriptions that are active on GraphQL connections.", "api", "protocol")
	openedTotal     = metrics.Describe("ws_opened_total", "GraphQL connections that were opened.", "api", "protocol")
	closedTotal     = metrics.Describe("ws_closed_total", "GraphQL connections that have ended, by close code: 1006 without a close frame, 4500 because the client read too slowly.", "api", "protocol", "code")
	messagesTotal   = metrics.Describe("ws_messages_total", "Messages on GraphQL connections: in from clients, out to them.", "api", "protocol", "direction")
)

// Metrics returns the metrics of the connections.
func (r *Registry) Metrics() prometheus.Collector {
	return metrics.New(r.collect, openConnections, openOperations, subscriptions, openedTotal, closedTotal, messagesTotal)
}

// present are the numbers of open connections.
type present struct {
	connections, operations, subscriptions float64
	in, out                                uint64
}

// collect shows the numbers of all APIs that have had a connection.
func (r *Registry) collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make(map[*totals]*[2]present, len(r.apis))
	for _, t := range r.apis {
		open[t] = new([2]present)
	}
	for _, m := range r.all {
		if of := open[m.of]; of != nil { // its API is in service
			of[m.conn.o.Protocol].add(&m.conn.tally)
		}
	}
	for t, now := range open {
		for p := range now {
			if n := &t.by[p]; n.opened > 0 {
				n.collect(ch, &now[p], metrics.Label(t.api), Protocol(p).String())
			}
		}
	}
}

func (p *present) add(t *tally) {
	p.connections++
	p.operations += float64(t.operations.Load())
	p.subscriptions += float64(t.subscriptions.Load())
	p.in += t.in.Load()
	p.out += t.out.Load()
}

func (n *numbers) collect(ch chan<- prometheus.Metric, now *present, api, protocol string) {
	ch <- metrics.Gauge(openConnections, now.connections, api, protocol)
	ch <- metrics.Gauge(openOperations, now.operations, api, protocol)
	ch <- metrics.Gauge(subscriptions, now.subscriptions, api, protocol)
	ch <- metrics.Counter(openedTotal, n.opened, api, protocol)
	ch <- metrics.Counter(messagesTotal, n.in+now.in, api, protocol, "in")
	ch <- metrics.Counter(messagesTotal, n.out+now.out, api, protocol, "out")
	for code, times := range n.closed {
		name := codes[code]
		if name == "" {
			name = "other"
		}
		ch <- metrics.Counter(closedTotal, times, api, protocol, name)
	}
}
