package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// LiveConnections are the GraphQL connections that are open.
func (g *Gateway) LiveConnections() *live.Registry { return &g.sockets }

// shownOf returns a connection as operators see it, from the exchange that opens it.
func shownOf(ex *pipeline.Exchange) *live.Member {
	m := &live.Member{Client: ex.Client, Request: string(ex.RequestID())}
	if ex.KeyHash != "" {
		m.Own(ownerOf(ex))
	}
	return m
}

// ownerOf returns the key of an exchange. Its texts may be part of a large buffer, which a
// connection would retain.
func ownerOf(ex *pipeline.Exchange) *live.Owner {
	owner := &live.Owner{Hash: strings.Clone(ex.KeyHash), Name: strings.Clone(ex.KeyName)}
	if ex.Session != nil {
		owner.Alias = strings.Clone(ex.Session.Alias)
	}
	return owner
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

// withID adds a request id to the first of some errors, a JSON array, unless that has
// extensions. By it an explanation finds why the operation was refused.
func withID(errors, id []byte) []byte {
	s := jsonscan.New(errors, jsonscan.MaxDepth)
	if !s.Array() || !s.Element() {
		return errors
	}
	first := s.Value()
	inside := jsonscan.New(first.Raw, jsonscan.MaxDepth)
	if !inside.Object() {
		return errors
	}
	members := 0
	for inside.Member() {
		if string(inside.Name()) == "extensions" {
			return errors
		}
		_ = inside.Value()
		members++
	}
	end := bytes.IndexByte(errors, '{') + len(first.Raw) - 1
	if members == 0 || inside.Err() != nil {
		return errors
	}
	more := slices.Concat([]byte(`,"extensions":{"request_id":"`), id, []byte(`"}`))
	return slices.Concat(errors[:end], more, errors[end:])
}
