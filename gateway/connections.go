package gateway

import (
	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// LiveConnections are the GraphQL connections that are open.
func (g *Gateway) LiveConnections() *live.Registry { return &g.sockets }

// shownOf returns a connection as operators see it, from the exchange that opens it.
func shownOf(ex *pipeline.Exchange) *live.Member {
	m := &live.Member{Client: ex.Client, Request: string(ex.RequestID())}
	if ex.KeyHash != "" {
		owner := &live.Owner{Hash: ex.KeyHash, Name: ex.KeyName}
		if ex.Session != nil {
			owner.Alias = ex.Session.Alias
		}
		m.Own(owner)
	}
	return m
}

// watch serves a connection while operators can see it.
func (s *socket) watch(c *live.Conn) {
	g := s.gateway
	g.sockets.Add(c, s.shown, s.api, s.org)
	c.Serve()
	g.sockets.Remove(s.shown)
	g.observe.ConnectionEnded(s.shown)
}

// ended records an operation that has ended.
func (s *socket) ended(e live.OperationEnd) { s.gateway.observe.OperationEnded(s.shown, &e) }

// describe notes what an operation is, for operators.
func describe(ex *pipeline.Exchange, op *live.Operation) {
	n := live.Note{Request: string(ex.RequestID())}
	if len(ex.Operations) > 0 {
		n.Kind, n.Name = ex.Operations[0].Kind.String(), ex.Operations[0].Name
	}
	op.Describe(n)
}
