package version

import (
	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A reply is an answer that is made when configuration loads.
type reply struct {
	status int
	lines  string
	body   []byte
	bare   bool // the status has no body, nor a length of one
}

// newReply prepares a reply, or nil for nil.
func newReply(said *definition.Reply) *reply {
	if said == nil {
		return nil
	}
	r := &reply{status: said.Status, body: []byte(said.Body), bare: said.Status == 204 || said.Status == 304}
	for _, h := range said.Headers {
		r.lines += h.Name + ": " + h.Value + "\r\n"
	}
	return r
}

func (r *reply) answer(ex *pipeline.Exchange) pipeline.Verdict {
	a := ex.Answer
	a.Status, a.Body = r.status, r.body
	a.Lines = append(a.Lines, r.lines...)
	switch {
	case r.bare:
		a.NoBody, a.Length = true, -1
	case ex.Call.IsHead():
		a.NoBody, a.Length = true, int64(len(r.body))
	}
	return pipeline.Answered
}

// Mocks returns the stage that answers calls of a version in place of the
// upstream, or nil when the version has no such replies.
func Mocks(v *definition.Version, o Options) (pipeline.Stage, error) {
	said := v.PathRules()
	if len(said.Mocks) == 0 {
		return nil, nil
	}
	opts := match.PatternOptions{IgnoreCase: v.IgnoreEndpointCase, Unanchored: o.Unanchored}
	var list []match.Endpoint[*mock]
	for i := range said.Mocks {
		m := &said.Mocks[i]
		list = append(list, endpoint(m.PathMatch, opts, &mock{PathMatch: m.PathMatch, at: m.At, reply: newReply(&m.Reply)}))
	}
	compiled, err := compile(list)
	return &mocks{compiled}, err
}

// A mock is a reply with the calls that it is for.
type mock struct {
	definition.PathMatch
	at    string // where it is in the definition
	reply *reply
}

type mocks struct {
	list *match.Endpoints[*mock]
}

// Handle answers the call if there is a reply for it. HEAD is answered as GET is.
func (s *mocks) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	m, ok := s.find(ex)
	if !ok {
		return pipeline.Next
	}
	return m.reply.answer(ex)
}

func (s *mocks) find(ex *pipeline.Exchange) (*mock, bool) {
	m, ok := s.list.Find(ex.Call.Method, ex.Path, ex.PathBuf)
	if !ok && ex.Call.IsHead() {
		return s.list.Find(get, ex.Path, ex.PathBuf)
	}
	return m, ok
}

var get = []byte("GET")
