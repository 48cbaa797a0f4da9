package pipeline

import (
	"net/netip"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/http1"
)

// An Exchange is one request on its way through an API. Exchanges are pooled: the
// exchange and every slice reached through it are invalid once the handler returns.
type Exchange struct {
	Call     *wire.Call            // the client's request
	Answer   *wire.Answer          // the response, Call's own
	API      *API                  // nil until the route is matched
	Version  *Version              // of API, the one that serves the request; nil until API is set
	Policies *definition.PolicySet // of the snapshot that serves the request
	Revision string                // of that snapshot
	Internal InternalCalls         // makes calls to other APIs of that snapshot

	Parent *Exchange // the exchange that made this internal call; nil for a client's request
	Child  *Exchange // the latest internal call of this exchange, or nil; Release releases it

	// Path is the decoded path below the listen path; it starts with "/".
	// Rest is the same part as the client wrote it. Both alias buffers of the
	// exchange or of Call.
	Path, Rest []byte

	Client  netip.Addr // the client's address, behind trusted proxies
	ID      [32]byte   // request id that the gateway makes, lower-case hex
	GivenID []byte     // request id of the caller that takes its place; nil: none. It aliases Call
	Started time.Time
	Trace   Trace

	Caller
	Charge     Charge
	ReportOnly ReportOnlyRefusals
	DryRun     *DryRun  // nil for real requests
	Play       *Play    // nil for requests of clients
	Opening    *Opening // nil unless the exchange opens a GraphQL connection
	Live       *Live    // nil unless it is an operation of one

	// Open is set when the path needs no key: the version's Open stages run instead
	// of its Request stages.
	Open bool

	Stopped *StageKind // the stage that ended the last Run

	Captures  Captures // matches of rewrite triggers
	Outgoing  Outgoing
	Rejection *Rejection // set by Reject

	// Operations are the GraphQL operations of the request, in order, as far as they
	// were understood. The slice is valid until Release; what it points to is
	// immutable.
	Operations []*validate.Facts
	Held       Held // a stage's state for this exchange, or nil
	Awaited    Held // the single-flight call whose answer others wait for, or nil

	RetryAfter int    // seconds, sent with a rejection; 0: not sent
	MediaType  string // of GraphQL error answers; "": application/json

	Upstream Upstream
	Buf      []byte // scratch that keeps its capacity between requests; a stage may use it within one Handle
	PathBuf  []byte // holds Path
	BodyBuf  []byte // like Buf, for the stage that sets Outgoing.Body

	// Streams is set on an internal call whose answer is passed on as it arrives: it is
	// measured when that ends.
	Streams bool

	// Cut is set by a stage that keeps the answer open, as a stream or on a connection that
	// has left HTTP: it ends that as its protocol has it, once the request is not allowed any
	// more. It does not wait.
	Cut func(why error)

	relay *wire.Relay // the one that owns Call; nil for a client's request
}

// A Caller is who sends a request and what they may do. All fields are empty when
// the API is keyless.
type Caller struct {
	Token    []byte              // the credential as the client sent it; never logged
	TokenBuf []byte              // holds Token when the request does not contain it verbatim
	KeyHash  string              // identity of the key; "" when keyless or not yet known. A dry run or a call of the playground may set it before there is a session, to name the key that calls
	KeyName  string              // name of the key in logs and events: the beginning of a hash, even when KeyHash is the key itself
	Session  *definition.Session // shared between requests: read-only
	Grant    *Grant              // what the key may do with the API
	Grants   *Grants             // where grants of the key are kept
	InGrace  bool                // the key was rotated, and this credential is in its grace period
	Claims   []byte              // claims of the verified JSON Web Token, as a JSON object; nil without one
}

// A DryRun makes an exchange an explanation: it passes the stages that a real
// request would pass, but nothing is counted, cached, logged, sent or waited for.
type DryRun struct {
	At       *time.Time // the moment to explain; nil: now
	Recorded bool       // the request was recorded, without what authenticates: its client certificate is taken for the one that is needed
	Policies []string   // ids of the policies that a token gave the caller of a recorded request; nil: KeyHash names the caller
}

// RequestID returns the caller's request id if it is kept, and otherwise the gateway's.
func (ex *Exchange) RequestID() []byte {
	if len(ex.GivenID) > 0 {
		return ex.GivenID
	}
	return ex.ID[:]
}

// MaxRequestID is the longest request id of a caller that is kept, in bytes.
const MaxRequestID = 64

// IsRequestID reports whether a request id of a caller can be kept: 1 to MaxRequestID
// letters, digits and -_.:=+/@. It needs no escaping in headers and logs.
func IsRequestID[T string | []byte](id T) bool {
	if len(id) == 0 || len(id) > MaxRequestID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '=', c == '+', c == '/', c == '@':
		default:
			return false
		}
	}
	return true
}

// IsDry reports whether the exchange is a dry run.
func (ex *Exchange) IsDry() bool { return ex.DryRun != nil }

// IsRecorded reports whether the exchange is a dry run of a recorded request.
func (ex *Exchange) IsRecorded() bool { return ex.DryRun != nil && ex.DryRun.Recorded }

// DryRunAt returns the moment that a dry run asks about; nil for the present, and
// for real requests. Decisions that depend on it use Moment; Started is the time of
// the request, by which stages keep state.
func (ex *Exchange) DryRunAt() *time.Time {
	if ex.DryRun == nil {
		return nil
	}
	return ex.DryRun.At
}

// Outgoing is how the upstream request differs from the client's.
type Outgoing struct {
	Drop  []string // canonical names of request headers that are not forwarded; shared and read-only: AlsoDrop adds to them
	Extra []byte   // header lines to add, each ended by CRLF; a line that replaces one needs its name in Drop too
	Query []byte   // replaces the client's query string, when HasQuery
	Path  []byte   // replaces the client's path below the listen path, percent-encoded and beginning with "/", when HasPath
	Body  []byte   // replaces the client's body, when HasBody; valid until the exchange is released

	// Alternate is which of the upstreams named by the version's rewrites is called,
	// counted from 1; 0 is the version's own upstream.
	Alternate uint16

	HasQuery bool
	HasPath  bool
	HasBody  bool
	Post     bool // the method is POST, whatever the client's
	Root     bool // the target URL itself is called, without the client's path and query

	dropped []string // Drop once AlsoDrop has added to it
	rewrote bool     // Extra has lines that replace the client's of a name in Drop
}

// AlsoDrop adds the canonical name of a header that is not forwarded, and removes
// the lines that Rewrite added under it. name is retained: it must not alias a
// buffer of the request.
func (o *Outgoing) AlsoDrop(name string) {
	if o.rewrote {
		o.Extra = http1.RemoveLines(o.Extra, name)
	}
	if len(o.dropped) == 0 {
		o.dropped = append(o.dropped, o.Drop...)
	}
	o.dropped = append(o.dropped, name)
	o.Drop = o.dropped
}

// Rewrite drops the client's header lines of a canonical name; the caller appends
// their replacement to Extra. name is retained.
func (o *Outgoing) Rewrite(name string) {
	o.AlsoDrop(name)
	o.rewrote = true
}

// Upstream is what the call upstream came to.
type Upstream struct {
	Address  string        // host:port that answered or failed; "" when none was called
	Status   int           // 0 without an answer
	Duration time.Duration // from the beginning of the call, connecting included, to the last byte of the answer, or to the failure
	Retries  uint8
	Cached   bool  // the answer came from the cache
	Failed   error // why there is no answer; nil: there is one, or nothing was called
}

var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// For returns an exchange for a call, from the pool. The caller releases it before
// its handler returns.
func For(call *wire.Call) *Exchange {
	ex := exchanges.Get().(*Exchange)
	ex.Call, ex.Answer = call, &call.Answer
	ex.Started = call.Started
	return ex
}

// maxKept bounds the scratch memory of a pooled exchange, in bytes.
const maxKept = 16 << 10

// Release returns the exchange to the pool; it must not be used afterwards.
func (ex *Exchange) Release() {
	ex.releaseChild()
	if ex.Held != nil {
		ex.Held.Release()
	}
	if ex.Awaited != nil {
		ex.Awaited.Release()
	}
	buf, path, extra, query := ex.Buf[:0], ex.PathBuf[:0], ex.Outgoing.Extra[:0], ex.Outgoing.Query[:0]
	body, dropped, rewritten, captures := ex.BodyBuf[:0], ex.Outgoing.dropped[:0], ex.Outgoing.Path[:0], ex.Captures
	token := ex.TokenBuf[:0]
	captures.Cut(0)
	if cap(token)+cap(buf)+cap(path)+cap(extra)+cap(query)+cap(body)+cap(rewritten)+captures.size() > maxKept {
		buf, path, extra, query, body, rewritten, captures = nil, nil, nil, nil, nil, nil, Captures{}
		token = nil
	}
	*ex = Exchange{} // in place: a literal with fields would be built on the stack and copied
	ex.Buf, ex.PathBuf, ex.BodyBuf = buf, path, body
	ex.Outgoing.Extra, ex.Outgoing.Query, ex.Outgoing.dropped = extra, query, dropped
	ex.Outgoing.Path, ex.Captures, ex.TokenBuf = rewritten, captures, token
	exchanges.Put(ex)
}

// Settle lets those go that wait for the answer, which is about to be passed on as it
// arrives.
func (ex *Exchange) Settle() {
	for ; ex != nil; ex = ex.Child {
		if ex.Awaited != nil {
			ex.Awaited.Release()
			ex.Awaited = nil
		}
	}
}

// Streamed measures the internal calls of ex whose answer was passed on as it arrived, and
// has been read.
func (ex *Exchange) Streamed(at time.Time) {
	for child := ex.Child; child != nil; child = child.Child {
		if meter := child.API.Meter; child.Streams && meter != nil {
			child.Upstream.Duration = ex.Upstream.Duration
			child.Call.EndAt(at)
			meter.Done(child)
		}
	}
}

// Query returns the query string of the upstream request: the client's unless a
// stage has replaced it.
func (ex *Exchange) Query() []byte {
	if ex.Outgoing.HasQuery {
		return ex.Outgoing.Query
	}
	return ex.Call.Query
}

// Reject sets the rejection and returns Rejected.
func (ex *Exchange) Reject(r *Rejection) Verdict {
	ex.Rejection = r
	return Rejected
}
