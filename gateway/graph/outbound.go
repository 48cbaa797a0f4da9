package graph

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/definition"
)

// Bounds of requests to data sources.
const (
	maxAnswer  = 16 << 20 // bytes of a response
	maxAtOnce  = 16       // requests of one field for the objects of a list
	maxObjects = 10_000   // of a list whose field has a source
)

// A fault is why a data source has no value. Its text is for clients: it names the source,
// and not its address.
type fault struct{ text string }

// Error implements error.
func (f *fault) Error() string { return f.text }

// An outcome is the response of a data source.
type outcome struct {
	status int
	body   []byte
}

// connect compiles how the source is called.
func (s *source) connect(api *definition.API, c *Calls) (err error) {
	if s.Topics {
		if c.Topics == nil {
			return errors.New("topics of message brokers are not served here")
		}
		s.streams, err = c.Topics.Topics(api, s.Name, s.Config)
		return err
	}
	s.origin = upstream.OriginOf(s.Config.URL)
	if s.fetcher, err = upstream.CompileFetcher(api, s.Name, s.origin, c.Pools, c.Config); err != nil || !s.graph.data.Streams(s.Source) {
		return err
	}
	own := *api
	own.Proxy.TargetURL, own.Proxy.PreserveHostHeader = s.Config.URL, false
	s.streams, err = upstream.Compile(&own, c.Pools, c.Config)
	return err
}

// call sends a request to the data source s and reads the whole response. Clients are not
// told the cause of failures.
func (s *source) call(r *run, method, url string, header http.Header, body []byte) (outcome, error) {
	target := url[len(s.origin):]
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	trace := r.ex.Trace.Branch()
	lines := appendLines(nil, header)
	if header["Traceparent"] == nil {
		lines = upstream.AppendTrace(lines, r.ex.Call, &trace)
	}
	r.begin()
	got, err := s.fetcher.Do(r.ctx, r.ex, &upstream.Fetch{
		Method: method, Target: target, Lines: lines, Body: body, Within: s.timeout, Most: maxAnswer, Trace: trace,
	})
	r.ended(&got, &pipeline.Fetch{Source: s.Name, Address: got.Address, Status: got.Status, Retries: got.Retries, Span: trace.Span})
	if err != nil {
		return outcome{}, s.failed(r, err)
	}
	if got.IsEncoded() {
		return outcome{}, s.faultf(r, "the response is compressed, which was not asked for")
	}
	return outcome{status: got.Status, body: got.Body}, nil
}

// appendLines appends header lines. Names and values have been checked.
func appendLines(b []byte, header http.Header) []byte {
	for name, values := range header {
		for _, value := range values {
			b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
		}
	}
	return b
}

func (s *source) failed(r *run, err error) error {
	refused, ok := errors.AsType[upstream.RefusedError](err)
	switch {
	case r.ctx.Err() != nil:
		return s.faultf(r, "the request has ended")
	case ok:
		return s.faultf(r, "%s", refused.Message)
	case errors.Is(err, upstream.ErrTooLarge):
		return s.faultf(r, "the response has more than %d bytes", maxAnswer)
	case upstream.IsTimeout(err):
		return s.faultf(r, "no answer within %s", s.timeout.Round(time.Millisecond))
	case upstream.IsDenied(err):
		return s.faultf(r, "its address may not be called")
	}
	return s.faultf(r, "it cannot be reached")
}

// faultf returns a fault of the source, and counts it.
func (s *source) faultf(r *run, format string, args ...any) error {
	r.faults.Add(1)
	return &fault{fmt.Sprintf("%s %q: ", s.kind, s.Name) + fmt.Sprintf(format, args...)}
}

// refused returns the fault that the status of a response is, nil if it is none.
func (s *source) refused(r *run, status int) error {
	switch {
	case status >= 400:
		return s.faultf(r, "status %d", status)
	case status >= 300:
		return s.faultf(r, "status %d, and redirects are not followed", status)
	}
	return nil
}
