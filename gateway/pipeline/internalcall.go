package pipeline

import (
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
)

// MaxInternalCalls is how many internal calls may follow each other for one
// request.
const MaxInternalCalls = 5

// An APIRef names the API of an internal call.
type APIRef struct {
	Self bool   // the calling API itself
	Name string // the API's id or name
	Key  string // of the name, unique among organisations
}

// InternalCalls makes calls from one API to another of the same snapshot.
type InternalCalls interface {
	// Call runs a child of ex through the stages of another API, with the request
	// that would go upstream and the path and query uri. The answer is in ex.Answer,
	// the refusal in ex.Rejection. It does not retain uri.
	Call(ex *Exchange, to *APIRef, uri []byte) Verdict

	// AppendFingerprints appends the fingerprints of the API that ex would call, and
	// of those that this one calls in turn. It returns false when one of them is not
	// served or has no fingerprint. It allocates only to grow dst.
	AppendFingerprints(dst []byte, ex *Exchange, to *APIRef) ([]byte, bool)
}

// NewChild returns the exchange of an internal call to the path and query uri. It
// shares the answer of ex and is released with it. The caller sets the API and the
// path.
func (ex *Exchange) NewChild(uri []byte) *Exchange {
	ex.releaseChild()
	relay := ex.Call.Relay(uri)
	out := &ex.Outgoing
	if len(out.Drop) > 0 || len(out.Extra) > 0 || ex.Call.Find(wire.NameConnection) != nil {
		relay.UseLines(append(ex.appendLines(relay.OwnLines()), out.Extra...))
	}
	if out.HasBody {
		relay.SetBody(out.Body)
	}
	if out.Post {
		relay.Method = post
	}
	child := For(&relay.Call)
	child.Answer, child.relay, child.Parent, ex.Child = ex.Answer, relay, ex, child
	child.Internal, child.Policies, child.Revision = ex.Internal, ex.Policies, ex.Revision
	child.Client, child.ID, child.GivenID, child.DryRun, child.Trace = ex.Client, ex.ID, ex.GivenID, ex.DryRun, ex.Trace
	if ex.Play != nil {
		child.Play = ex.Play.below(ex)
		child.KeyHash = child.Play.KeyHash
	}
	child.Trace.Steps = nil // the call is one step of its parent
	return child
}

// A Branch is a request that goes to another API in place of that of an exchange.
type Branch struct {
	Method string
	Lines  []byte       // header lines, each ended by CRLF
	Body   []byte       // it must live as long as the branch
	Trace  *Trace       // that it is part of
	Left   *atomic.Bool // its client has left once it is set
}

// Branch returns an exchange that makes an internal call in the place of ex: with a request
// and an answer of its own. Several of them may be used at the same time, each by one
// goroutine, while nothing writes to ex. EndBranch releases it.
func (ex *Exchange) Branch(b *Branch) *Exchange {
	relay := ex.Call.Relay(nil)
	relay.Method, relay.HTTP10 = []byte(b.Method), false
	relay.UseLines(append(relay.OwnLines(), b.Lines...))
	relay.SetBody(b.Body)
	relay.UntilLeft(b.Left)
	own := For(&relay.Call)
	own.relay, own.Parent = relay, ex.Parent
	own.API, own.Version, own.Session, own.Play, own.DryRun = ex.API, ex.Version, ex.Session, ex.Play, ex.DryRun
	own.Internal, own.Policies, own.Revision = ex.Internal, ex.Policies, ex.Revision
	own.Client, own.ID, own.GivenID, own.Trace = ex.Client, ex.ID, ex.GivenID, *b.Trace
	return own
}

// EndBranch releases what Branch returned. Its answer is not used afterwards.
func (ex *Exchange) EndBranch() {
	relay := ex.relay
	ex.Release()
	relay.Free()
}

var (
	post    = []byte("POST")
	upgrade = []byte("upgrade")
)

// appendLines appends the client's header lines that are forwarded: without those
// that stages drop, in any spelling that upstreams treat as the same name, and
// without hop-by-hop headers. Connection itself is rebuilt: its list could remove a
// header that a later API adds.
func (ex *Exchange) appendLines(dst []byte) []byte {
	call := ex.Call
	var hop http1.Connection
	for i := range call.Fields {
		if f := &call.Fields[i]; f.Name == wire.NameConnection {
			hop.Add(call.ValueOf(f))
		}
	}
	for i := range call.Fields {
		f := &call.Fields[i]
		name := call.NameOf(f)
		switch {
		case f.Name == wire.NameConnection && !hop.TooMany, http1.AnySameVariable(name, ex.Outgoing.Drop):
		case f.Name != wire.NameUpgrade && hop.Holds(name):
		default:
			dst = append(dst, call.Lines[f.Start:f.End]...)
		}
	}
	if hop.Holds(upgrade) && !hop.TooMany {
		dst = append(dst, "Connection: Upgrade\r\n"...)
	}
	return dst
}

// releaseChild releases the latest internal call.
func (ex *Exchange) releaseChild() {
	if child := ex.Child; child != nil {
		relay := child.relay
		child.Release()
		relay.Free()
		ex.Child = nil
	}
}

// Depth returns how many internal calls led to ex; 0 for a client's request.
func (ex *Exchange) Depth() (n int) {
	for ; ex.Parent != nil; ex = ex.Parent {
		n++
	}
	return n
}

// RefusedByChild reports whether the rejection is that of an internal call: the API
// that was called has written the answer and raised its event.
func (ex *Exchange) RefusedByChild() bool {
	return ex.Child != nil && ex.Rejection != nil && ex.Child.Rejection == ex.Rejection
}
