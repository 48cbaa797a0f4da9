package pipeline

import (
	"bytes"
	"net/netip"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// Exchange is one request on its way through an API. It is pooled: it and every
// slice reached through it are dead once the handler returns.
type Exchange struct {
	Call     *wire.Call            // the request as it came; its Answer is what goes back
	Answer   *wire.Answer          // Call's
	API      *API                  // nil until one matched
	Version  *Version              // of API, the one that serves the request; nil until API is set
	Policies *definition.PolicySet // those of the snapshot that serves the request
	Revision string                // of that snapshot
	Others   Others                // of that snapshot, which the request may be handed over to

	Front  *Exchange // of another API, which went on as this one; nil: the request came here itself
	Behind *Exchange // of another API, which this one went on as; nil: it did not. Release releases it

	// Path is the decoded path below the listen path; it starts with "/".
	// Rest is the same part as the client wrote it. Both alias buffers of the
	// exchange or of Call.
	Path, Rest []byte

	Client  netip.Addr // the caller, behind trusted proxies
	ID      [32]byte   // request id, lower-case hex
	Started time.Time
	Trace   Trace // that the request is part of

	Token   []byte              // the credential as the client sent it, never logged; nil when keyless
	KeyHash string              // identity of the key; "" when keyless or not yet known
	Session *definition.Session // nil when keyless; shared, so never written to
	Grant   *Grant              // what the key may do with API; nil when keyless
	Grants  *Grants             // where grants of the key are kept; nil when keyless
	Guest   Guest               // whose Session, Grant and Grants end with the exchange; nil: nobody's. Release releases it
	KeyName string              // what logs and events call the key: the beginning of a hash, even when KeyHash is the key itself

	Retiring bool // the credential is of a key that has a successor, and ends before long

	// Open: the path asks for no key, so that the version's Open stages decide
	// rather than its Request stages.
	Open bool

	// Dry: the request is only thought of, for an explanation. It goes through the
	// stages that a real one would, but nothing is counted, raised, remembered,
	// sent or waited for. KeyHash, when it is set before there is a session, names
	// the key that calls in place of a credential.
	Dry bool
	// Due is the moment that a dry exchange asks about; nil when that is now. What
	// is judged by it reads Moment, never Started, by which stages remember.
	Due *time.Time

	// Stopped is the place, in its list, of the stage that ended the last Run.
	Stopped uint8

	// Claims are those of the JSON Web Token that was verified, as the JSON object
	// that it holds; nil without one.
	Claims []byte

	Captures  Captures // what the triggers of a rewrite found
	Outgoing  Outgoing
	Calls     uint16                   // how many calls the request counts as, all or nothing; 0 is one
	Rated     uint16                   // how many of them the rate has counted before the other limits were asked
	Counts    [MaxLimits]counter.Count // what Grant.Limits had left, once Counted; the rate's once Rated
	Counted   bool
	Rejection *Rejection // set by Reject

	// Spared are the refusals that were left out because the policy that they
	// come from is on trial, in order; those that there are begin the array.
	Spared [MaxSpared]Spared

	// Operations are those of GraphQL that the request asks for, in order, as far
	// as they were understood. The slice is good until Release, what it points to
	// for ever.
	Operations []*validate.Facts
	Held       Held // nil: nothing
	Awaited    Held // an answer that others wait for, in order to keep it; nil: none

	RetryAfter int    // seconds, sent with a rejection; 0: not sent
	MediaType  string // of answers with GraphQL errors; "": application/json

	Upstream Upstream
	Buf      []byte // scratch that keeps its capacity between requests; a stage may use it within one Handle
	PathBuf  []byte // holds Path
	TokenBuf []byte // holds Token when that is not written in the request as it is
	BodyBuf  []byte // scratch like Buf, for whichever stage sets Outgoing.Body: nobody else uses it

	relay *wire.Relay // that Call is of; nil when it came itself
}

// Outgoing is how the request that goes upstream differs from the one that came.
type Outgoing struct {
	Drop  []string // canonical names of request headers that are not forwarded; compiled and shared: AlsoDrop adds to them
	Extra []byte   // whole header lines added, each ended by CRLF; a line that replaces one needs its name in Drop too
	Query []byte   // query string in place of the client's, when HasQuery
	Path  []byte   // path in place of the rest of the client's, when HasPath; escapes and all, begins with "/"
	Body  []byte   // body in place of the client's, when HasBody; alive until the exchange is released

	// Elsewhere tells which of the hosts and APIs that the version's rewrites name is
	// called in place of its upstream, counted from 1; 0 is none of them.
	Elsewhere uint16

	HasQuery bool
	HasPath  bool
	HasBody  bool
	Post     bool // the method is POST, whatever the client's
	Root     bool // the target URL itself is called, without the rest of the path and without a query

	dropped []string // Drop once AlsoDrop has added to it
	rewrote bool     // Extra has lines that stand for the client's of a name in Drop
}

// AlsoDrop adds the canonical name of a header that is not forwarded. name must
// not be made for the request: it is held on to. What Rewrite put in the place of
// such headers goes as well.
func (o *Outgoing) AlsoDrop(name string) {
	if o.rewrote {
		o.Extra = without(o.Extra, name)
	}
	if len(o.dropped) == 0 {
		o.dropped = append(o.dropped, o.Drop...)
	}
	o.dropped = append(o.dropped, name)
	o.Drop = o.dropped
}

// Rewrite begins to put lines, which the caller appends to Extra, in the place of
// the client's of a canonical name, which is held on to.
func (o *Outgoing) Rewrite(name string) {
	o.AlsoDrop(name)
	o.rewrote = true
}

// without takes the lines of a name out of lines.
func without(lines []byte, name string) []byte {
	kept := lines[:0]
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n') + 1
		if end == 0 {
			end = len(lines)
		}
		if line := lines[:end]; len(line) <= len(name) || line[len(name)] != ':' || string(line[:len(name)]) != name {
			kept = append(kept, line...)
		}
		lines = lines[end:]
	}
	return kept
}

// Upstream is what the call upstream came to.
type Upstream struct {
	Address  string        // host:port that answered or failed; "" when none was called
	Status   int           // 0 without an answer
	Duration time.Duration // from the first byte sent to the head of the answer
	Retries  uint8
	Cached   bool // none was called: the answer is that of an earlier call
}

var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// For takes an exchange for a call from the pool. The caller gives it back with
// Release before its handler returns.
func For(call *wire.Call) *Exchange {
	ex := exchanges.Get().(*Exchange)
	ex.Call, ex.Answer = call, &call.Answer
	ex.Started = call.Started
	return ex
}

// maxKept bounds the scratch that a pooled exchange keeps, in bytes.
const maxKept = 16 << 10

// Release returns the exchange to the pool; it must not be used afterwards.
func (ex *Exchange) Release() {
	ex.freeBehind()
	if ex.Held != nil {
		ex.Held.Release()
	}
	if ex.Awaited != nil {
		ex.Awaited.Release()
	}
	if ex.Guest != nil {
		ex.Guest.Release()
	}
	buf, path, extra, query := ex.Buf[:0], ex.PathBuf[:0], ex.Outgoing.Extra[:0], ex.Outgoing.Query[:0]
	body, dropped, rewritten, captures := ex.BodyBuf[:0], ex.Outgoing.dropped[:0], ex.Outgoing.Path[:0], ex.Captures
	token := ex.TokenBuf[:0]
	captures.Cut(0)
	if cap(token)+cap(buf)+cap(path)+cap(extra)+cap(query)+cap(body)+cap(rewritten)+captures.room() > maxKept {
		buf, path, extra, query, body, rewritten, captures = nil, nil, nil, nil, nil, nil, Captures{}
		token = nil
	}
	*ex = Exchange{} // in place: a literal with fields would be built elsewhere and copied
	ex.Buf, ex.PathBuf, ex.BodyBuf = buf, path, body
	ex.Outgoing.Extra, ex.Outgoing.Query, ex.Outgoing.dropped = extra, query, dropped
	ex.Outgoing.Path, ex.Captures, ex.TokenBuf = rewritten, captures, token
	exchanges.Put(ex)
}

// Query returns the query string that goes upstream, as far as stages have
// decided on it: the client's until one of them set another.
func (ex *Exchange) Query() []byte {
	if ex.Outgoing.HasQuery {
		return ex.Outgoing.Query
	}
	return ex.Call.Query
}

// Reject lets a stage end with "return ex.Reject(r)".
func (ex *Exchange) Reject(r *Rejection) Verdict {
	ex.Rejection = r
	return Rejected
}
