package httpcall

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// StatusMeta is the metadata that has the status of a response.
const StatusMeta = "http_status_code"

const (
	// drained is how much of an unwanted body is read, so that the connection can be used
	// again.
	drained      = 64 << 10
	longestAfter = time.Minute // that a server may ask to wait
)

// A Response is the answer to a call.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Ask sends the call once and reads the response. It is nil beside a failure.
func (c *Call) Ask(ctx context.Context) (*Response, *stream.Failure) {
	ctx, cancel := context.WithTimeout(ctx, c.plan.of.Timeout)
	defer cancel()
	answer, failure := c.send(ctx)
	if failure != nil {
		return nil, failure
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(c.plan.limit)+1))
	if err != nil {
		return nil, c.fault("the response broke off: ", err, true)
	}
	if len(body) > c.plan.limit {
		return nil, c.failf(stream.Permanent, "the response has more than %d bytes", c.plan.limit)
	}
	return &Response{answer.StatusCode, answer.Header, body}, nil
}

// Tell sends the call once. Of the response only the status counts.
func (c *Call) Tell(ctx context.Context) *stream.Failure {
	ctx, cancel := context.WithTimeout(ctx, c.plan.of.Timeout)
	defer cancel()
	answer, failure := c.send(ctx)
	if failure == nil {
		discard(answer)
	}
	return failure
}

// Open sends the call once. The body of the response goes on until ctx ends or it is closed;
// it is nil beside a failure. The timeout is for the head of the response.
func (c *Call) Open(ctx context.Context) (*http.Response, *stream.Failure) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(c.plan.of.Timeout, func() { cancel(context.DeadlineExceeded) })
	answer, failure := c.send(ctx)
	switch {
	case failure != nil:
		late.Stop()
		cancel(nil)
		return nil, failure
	case !late.Stop():
		_ = answer.Body.Close()
		return nil, c.fault("", context.DeadlineExceeded, true)
	}
	answer.Body = &body{answer.Body, cancel}
	return answer, nil
}

// body ends the context of its response when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// Broke returns the failure of a response whose body cannot be read to its end.
func (c *Call) Broke(err error) *stream.Failure {
	return c.fault("the response broke off: ", err, true)
}

// send sends the call. The response is a success.
func (c *Call) send(ctx context.Context) (*http.Response, *stream.Failure) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req := (&http.Request{
		Method: c.plan.of.Verb, URL: c.url, Host: c.url.Host, Header: c.Header,
		Body: http.NoBody, ContentLength: int64(len(c.body)),
	}).WithContext(ctx)
	if host := c.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if len(c.body) > 0 {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
		req.Body, _ = req.GetBody() // never fails
	}
	answer, err := c.plan.trips.RoundTrip(req)
	if err != nil {
		return nil, c.fault("", err, connected.Load())
	}
	if failure := c.judge(answer); failure != nil {
		discard(answer)
		return nil, failure
	}
	return answer, nil
}

func discard(answer *http.Response) {
	if answer.StatusCode != http.StatusSwitchingProtocols { // whose body knows no context
		_, _ = io.CopyN(io.Discard, answer.Body, drained) // at worst the connection is not used again
	}
	_ = answer.Body.Close()
}

// judge returns what is wrong with a status, nil for a success.
func (c *Call) judge(answer *http.Response) *stream.Failure {
	status, of := answer.StatusCode, c.plan.of
	class := stream.Permanent
	switch {
	case slices.Contains(of.DropOn, status):
	case slices.Contains(of.SuccessfulOn, status), status/100 == 2 && !slices.Contains(of.BackoffOn, status):
		return nil
	case status >= 500 && status != http.StatusServiceUnavailable:
		class = stream.Unknown
	case slices.Contains(of.BackoffOn, status), status == http.StatusRequestTimeout, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		class = stream.Transient
	}
	failure := &stream.Failure{Class: class, Err: &StatusError{of.Verb, c.url.Host, status}}
	if class != stream.Permanent {
		failure.After = after(answer.Header.Get("Retry-After"))
	}
	return failure
}

// after returns how long Retry-After asks to wait, up to a minute.
func after(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(longestAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(0, time.Until(at)), longestAfter)
}

// secret are headers of responses that carry credentials.
var secret = []string{
	"Authentication-Info", "Authorization", "Cookie", "Proxy-Authentication-Info", "Proxy-Authorization", "Set-Cookie", "Set-Cookie2", "X-Svc-Authorization",
}

// reserved begins the names of metadata that the gateway itself adds.
const reserved = "http_client_"

// Meta returns the status and the headers of a response as metadata, without credentials, as
// far as a stream.Carrier has room.
func Meta(status int, h http.Header) []stream.Meta {
	carried := stream.NewCarrier()
	carried.Add(StatusMeta, strconv.Itoa(status))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		lower := strings.ToLower(name)
		if !slices.Contains(secret, name) && lower != StatusMeta && !strings.HasPrefix(lower, reserved) {
			carried.Add(lower, strings.ToValidUTF8(strings.Join(h[name], ", "), "?"))
		}
	}
	return carried.Meta()
}
