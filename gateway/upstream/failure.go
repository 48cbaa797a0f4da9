package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// What clients read.
const (
	textProblem = "There was a problem proxying the request"
	textLookup  = "Upstream host lookup failed"
	textTimeout = "Upstream service reached hard timeout."
	textBusy    = "Service temporarily unavailable."
	textOver    = "Request is too large"
	textBody    = "There was a problem with reading Body of the Request."
)

var (
	rejectLookup    = pipeline.NewRejection(pipeline.ReasonUpstreamLookup, 502, textLookup)
	rejectConnect   = pipeline.NewRejection(pipeline.ReasonUpstreamConnect, 502, textProblem)
	rejectTLS       = pipeline.NewRejection(pipeline.ReasonUpstreamTLS, 502, textProblem)
	rejectReset     = pipeline.NewRejection(pipeline.ReasonUpstreamReset, 502, textProblem)
	rejectMalformed = pipeline.NewRejection(pipeline.ReasonUpstreamMalformed, 502, textProblem)
	rejectTimeout   = pipeline.NewRejection(pipeline.ReasonUpstreamTimeout, 504, textTimeout)
	rejectBusy      = pipeline.NewRejection(pipeline.ReasonUpstreamBusy, 503, textBusy)

	rejectBody   = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, textBody)
	rejectLarge  = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 413, "request body too large")
	rejectOver   = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 400, textOver)
	rejectSlow   = pipeline.NewRejection(pipeline.ReasonRequestTimeout, 408, "request took too long")
	rejectHeader = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "malformed request header")
)

// ClientGone refuses a request whose client has left.
var ClientGone = pipeline.NewRejection(pipeline.ReasonClientGone, 499, "Client closed request")

var (
	errStale   = errors.New("the pooled connection had ended or held unexpected bytes")
	errBusy    = errors.New("all connections are busy (upstream.max_conns_per_host), and none became free within upstream.max_conn_wait")
	errStopped = errors.New("connections are closed for good")
	errGone    = errors.New("the client closed its connection")
	errUpload  = errors.New("the request's body broke off while its answer was passed on")
	errHeader  = errors.New("request header with too many Connection lines")
)

// malformed is what was wrong with an answer.
type malformed string

func (m malformed) Error() string { return "malformed answer: " + string(m) }

// dialError is a connection that did not come about.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// handshakeError is a TLS handshake that failed.
type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

// timeoutError is a time-out of an upstream with the setting that it comes from.
type timeoutError struct {
	setting string
	after   time.Duration
	error
}

// Error names the setting.
func (e timeoutError) Error() string {
	return fmt.Sprintf("%s (%s) passed: %v", e.setting, e.after, e.error)
}

func (e timeoutError) Unwrap() error { return e.error }

// clientError is trouble with the body that the client sends.
type clientError struct{ error }

func (e clientError) Unwrap() error { return e.error }

// rejectionFor returns the answer that the client gets for err.
func rejectionFor(err error) *pipeline.Rejection {
	if _, ok := errors.AsType[clientError](err); ok {
		return rejectionForClient(err)
	}
	if _, ok := errors.AsType[handshakeError](err); ok {
		return rejectTLS
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return rejectLookup
	}
	if _, ok := errors.AsType[dialError](err); ok {
		return rejectConnect
	}
	if _, ok := errors.AsType[malformed](err); ok {
		return rejectMalformed
	}
	switch {
	case err == errBusy || err == errStopped:
		return rejectBusy
	case err == errHeader:
		return rejectHeader
	case isTimeout(err):
		return rejectTimeout
	}
	return rejectReset
}

func rejectionForClient(err error) *pipeline.Rejection {
	switch {
	case errors.Is(err, wire.ErrBodyTooLarge):
		return rejectLarge
	case errors.Is(err, wire.ErrBodyOverLimit):
		return rejectOver
	case errors.Is(err, wire.ErrBodyMalformed):
		return rejectBody
	case isTimeout(err):
		return rejectSlow
	}
	return ClientGone
}

// isTimeout reports whether a deadline ended a read or write.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// isDisconnect reports whether the other end went away.
func isDisconnect(err error) bool {
	return err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// failureLog logs why calls to one API's upstream fail, at a limited rate.
type failureLog struct {
	log     *slog.Logger
	api     string
	source  string // name of the data source; "": it is the API's upstream
	address string
	next    atomic.Int64 // unix nanoseconds from which on the next line may be written
	unsaid  atomic.Int64 // failures since the last line
}

// report writes at most one line a second.
func (l *failureLog) report(reason pipeline.Reason, err error) {
	if l.log == nil || reason == pipeline.ReasonClientGone {
		return
	}
	now := time.Now().UnixNano()
	next := l.next.Load()
	if now < next || !l.next.CompareAndSwap(next, now+int64(time.Second)) {
		l.unsaid.Add(1)
		return
	}
	attrs := [...]slog.Attr{
		slog.String("api", l.api), slog.String("upstream", l.address), slog.String("reason", reason.String()),
		slog.Int64("unsaid", l.unsaid.Swap(0)), slog.Any("err", err), slog.String("source", l.source),
	}
	shown := attrs[:]
	if l.source == "" {
		shown = attrs[:len(attrs)-1]
	}
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "call upstream failed", shown...)
}
