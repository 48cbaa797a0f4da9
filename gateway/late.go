package gateway

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/tunnels"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// Bounds of the payload of connection_init.
const (
	maxInitMembers = 100
	maxInitValue   = 8 << 10 // of one credential, bytes
)

// connecting is the stage that refuses connections and credentials in connection_init.
var connecting = &pipeline.StageKind{Name: "connection"}

// An opener answers handshakes of GraphQL connections without a credential.
type opener interface {
	OpenLate(ex *pipeline.Exchange) pipeline.Verdict
}

// openLate opens a connection that was refused because it has no credential, if the API
// takes that in connection_init.
func (g *Gateway) openLate(ex *pipeline.Exchange) pipeline.Verdict {
	stage, ok := ex.Version.GraphQL.(opener)
	if !ok || ex.Rejection.Reason != pipeline.ReasonAuthMissing || ex.Parent != nil || ex.Live != nil ||
		ex.Call.Find(wire.NameUpgrade) == nil || len(ex.API.Definition.InitHeaders()) == 0 {
		return pipeline.Rejected
	}
	return stage.OpenLate(ex)
}

// lateConnections counts the connections of each API whose credential has not come.
type lateConnections struct {
	mu sync.Mutex
	of map[string]int
}

// enter counts one more, and returns what counts one less. It returns nil if there are
// too many.
func (l *lateConnections) enter(api string, most int) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[api] >= most {
		return nil
	}
	if l.of == nil {
		l.of = make(map[string]int)
	}
	l.of[api]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.of[api]--; l.of[api] == 0 {
			delete(l.of, api)
		}
	})
}

var (
	tooManyLate = pipeline.NewRejection(pipeline.ReasonTunnelLimit, 503, "Too many connections to this API wait for a credential, please try again")
	stopping    = pipeline.NewRejection(pipeline.ReasonTunnelLimit, 503, goodbye)
)

// refuseOpening refuses a handshake that has been answered.
func refuseOpening(ex *pipeline.Exchange, why *pipeline.Rejection) pipeline.Verdict {
	a := ex.Answer
	a.NoBody, a.Length, a.Close, ex.Stopped, ex.RetryAfter = false, 0, true, connecting, 5
	return ex.Reject(why)
}

// A lateKey is the key of a connection whose credential comes in connection_init.
type lateKey struct {
	owner tunnels.Owner
	found atomic.Pointer[foundKey] // nil until it has come
	leave func()                   // the connection does not wait for it any more
}

type foundKey struct {
	call *wire.Call // the handshake with the credential
	key  string     // identity
}

var errNoText = errors.New("no text")

// forbidden is the refusal of a credential. Clients do not connect again by themselves after
// 1011; after 4403 the npm client graphql-ws does, with the same credential.
var forbidden = &live.Refusal{Code: live.CloseInternal, Reason: "Forbidden"}

// identify authenticates the client by the payload of connection_init.
func (s *socket) identify(payload []byte) (refused *live.Refusal) {
	g := s.gateway
	defer func() {
		if fault := recover(); fault != nil {
			g.server.Fault(fault)
			refused = &live.Refusal{Code: live.CloseInternal, Reason: internalError}
		}
	}()
	call := s.call.Again(nil)
	defer call.Free()
	call.Started = time.Now()
	ex := pipeline.For(&call.Call)
	setID(&ex.ID)
	ex.Client = s.client
	in := g.Current()
	if in == nil || !in.Find(ex) || ex.API.Definition.ID != s.api {
		ex.Release()
		return forbidden
	}
	names := ex.API.Definition.InitHeaders()
	sent := credentialsOf(payload, names)
	if sent.fault != "" {
		ex.Release()
		return &live.Refusal{Code: live.CloseBadMessage, Reason: sent.fault}
	}
	call.UseLines(sent.in(append(call.OwnLines(), s.call.Lines...)))
	ex.Internal = noCalls{in}
	verdict := pipeline.RunOnly(ex.API.Entry, ex, pipeline.OfRights)
	if verdict == pipeline.Next {
		verdict = pipeline.RunOnly(requestStages(ex), ex, pipeline.OfRights)
	}
	if verdict == pipeline.Rejected {
		return s.notIdentified(ex)
	}
	defer ex.Release()
	if verdict != pipeline.Next || ex.Session == nil {
		return forbidden
	}
	return s.identified(ex)
}

// notIdentified records a refused credential like that of a request.
func (s *socket) notIdentified(ex *pipeline.Exchange) *live.Refusal {
	g, refusal := s.gateway, forbidden
	if ex.Rejection.Reason == pipeline.ReasonKeyStoreUnavailable {
		refusal = &live.Refusal{Code: live.CloseTryAgain, Reason: ex.Rejection.Message}
	}
	meter := g.unmatched
	if ex.API.Meter != nil {
		meter = ex.API.Meter
	}
	ex.Stopped = connecting
	g.reject(ex)
	g.remember(ex)
	g.finish(ex, meter)
	return refusal
}

// identified makes the connection one of a key.
func (s *socket) identified(ex *pipeline.Exchange) *live.Refusal {
	found := &foundKey{call: ex.Call.Keep(), key: strings.Clone(ex.KeyHash)}
	if all := s.gateway.stages.Tunnels; all != nil {
		if all.Own(&s.late.owner, strings.Clone(ex.KeyName), found.key) != tunnels.Free {
			return &live.Refusal{Code: live.CloseTryAgain, Reason: "Too many connections of this key are open"}
		}
		defer all.Wake() // its rights may have changed meanwhile
	}
	s.shown.Own(ownerOf(ex))
	s.call = found.call
	s.late.found.Store(found)
	s.late.leave()
	return nil
}

// credentials are the header lines that stand in the payload of connection_init, as members
// or within its member headers: those of names, and no others.
type credentials struct {
	names   []string
	taken   []string // of names, those in lines
	members int
	lines   []byte
	fault   string // what is wrong with the payload
}

func credentialsOf(payload []byte, names []string) *credentials {
	c := &credentials{names: names}
	if s := jsonscan.New(payload, jsonscan.MaxDepth); len(payload) > 0 && s.Object() {
		c.read(&s, true)
	}
	return c
}

// in returns the header lines of the handshake with the credentials.
func (c *credentials) in(lines []byte) []byte {
	return append(http1.RemoveLines(lines, c.taken...), c.lines...)
}

// read reads the members of an object.
func (c *credentials) read(s *jsonscan.Scanner, outer bool) {
	for c.fault == "" && s.Member() {
		name, value := s.Name(), s.Value()
		if c.members++; c.members > maxInitMembers {
			c.fault = "The payload of connection_init has more than " + strconv.Itoa(maxInitMembers) + " members"
			return
		}
		if outer && jsonscan.Equal(name, "headers") && value.Kind == jsonscan.Object {
			if inner := jsonscan.New(value.Raw, jsonscan.MaxDepth); inner.Object() {
				c.read(&inner, false)
			}
			continue
		}
		if i := slices.IndexFunc(c.names, func(one string) bool { return jsonscan.EqualFold(name, one) }); i >= 0 {
			c.take(c.names[i], value)
		}
	}
}

// take adds the line of a header.
func (c *credentials) take(name string, value jsonscan.Value) {
	var text []byte
	err := errNoText
	if value.Kind == jsonscan.String {
		text, err = jsonscan.Unescape(nil, value.Text())
	}
	switch {
	case err != nil:
		c.fault = name + " in the payload of connection_init must be a text"
	case slices.Contains(c.taken, name):
		c.fault = name + " is in the payload of connection_init twice"
	case len(text) > maxInitValue:
		c.fault = name + " in the payload of connection_init is longer than " + strconv.Itoa(maxInitValue) + " bytes"
	case slices.ContainsFunc(text, isControl):
		c.fault = name + " in the payload of connection_init has control characters"
	default:
		c.taken = append(c.taken, name)
		c.lines = append(append(append(append(c.lines, name...), ": "...), text...), "\r\n"...)
	}
}

// isControl reports whether a byte may not stand in a header's value (RFC 9110 section 5.5).
func isControl(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }
