package pipeline

import (
	"github.com/sluicegate/sluice/gateway/upstream/field"
	"github.com/sluicegate/sluice/gateway/wire"
)

// MaxHandovers is how many times one request may be handed over from an API to
// another.
const MaxHandovers = 5

// A Ref says which API of the gateway a request goes on to.
type Ref struct {
	Self bool   // the one that it is at
	Name string // the API's id, or what stands for its name
	Key  string // of its name among those of its organisation
}

// Others are the APIs beside the one that a request is at, as they are in the
// configuration that serves it.
type Others interface {
	// HandOver takes ex through the stages of another API, as the request that
	// would go upstream, to the path and query uri. The answer is in ex.Answer, or
	// the refusal in ex.Rejection. It does not keep uri.
	HandOver(ex *Exchange, to *Ref, uri []byte) Verdict

	// AppendForms appends what stands for the forms of the API that ex would go on to,
	// and of those behind it. It returns false when one of them is not served, or does
	// not answer all who ask the same alike. It does not allocate but for dst.
	AppendForms(dst []byte, ex *Exchange, to *Ref) ([]byte, bool)
}

// Onward returns the exchange that ex goes on as in another API, to the path and
// query uri. It is released with ex, and has its answer. The caller sets the API
// and the path.
func (ex *Exchange) Onward(uri []byte) *Exchange {
	ex.freeBehind()
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
	next := For(&relay.Call)
	next.Answer, next.relay, next.Front, ex.Behind = ex.Answer, relay, ex, next
	next.Others, next.Policies, next.Revision = ex.Others, ex.Policies, ex.Revision
	next.Client, next.ID, next.Dry, next.Due, next.Trace = ex.Client, ex.ID, ex.Dry, ex.Due, ex.Trace
	next.Trace.Steps = nil // they are one step of the request's
	return next
}

var (
	post    = []byte("POST")
	upgrade = []byte("upgrade")
)

// appendLines appends the client's header lines but those that stages drop, in
// whatever spelling upstreams take for the same, and those that are not to be sent
// on: named in Connection, they would take what is added off further on.
func (ex *Exchange) appendLines(dst []byte) []byte {
	call := ex.Call
	var hop field.Connection
	for i := range call.Fields {
		if f := &call.Fields[i]; f.Name == wire.NameConnection {
			hop.Add(call.ValueOf(f))
		}
	}
	for i := range call.Fields {
		f := &call.Fields[i]
		name := call.NameOf(f)
		switch {
		case f.Name == wire.NameConnection && !hop.TooMany, isDropped(name, ex.Outgoing.Drop):
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

// isDropped tells whether a name is one of those.
func isDropped(name []byte, drop []string) bool {
	for _, d := range drop {
		if len(d) == len(name) && field.EqualNames(name, d) {
			return true
		}
	}
	return false
}

// freeBehind releases what the exchange went on as.
func (ex *Exchange) freeBehind() {
	if next := ex.Behind; next != nil {
		relay := next.relay
		next.Release()
		relay.Free()
		ex.Behind = nil
	}
}

// Handovers returns how many times the request was handed over so far.
func (ex *Exchange) Handovers() (n int) {
	for ; ex.Front != nil; ex = ex.Front {
		n++
	}
	return n
}

// Relayed tells whether what refuses the exchange is the API that it went on to,
// which has seen to all that a refusal asks for.
func (ex *Exchange) Relayed() bool {
	return ex.Behind != nil && ex.Rejection != nil && ex.Behind.Rejection == ex.Rejection
}
