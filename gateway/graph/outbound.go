package graph

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/dialguard"
)

// Bounds of requests to data sources.
const (
	maxAnswer      = 16 << 20 // bytes of a response
	maxAnswerHead  = 64 << 10
	maxIdlePerHost = 64
	maxPerHost     = 512
	maxAtOnce      = 16     // requests of one field for the objects of a list
	maxObjects     = 10_000 // of a list whose field has a source
)

// newTransport returns the connections to data sources. They follow no redirect, use no
// proxy, and lead where upstreams may be.
func (e *Engine) newTransport(roots *x509.CertPool) *http.Transport {
	dialer := net.Dialer{Timeout: e.opts.DialTimeout, ControlContext: func(ctx context.Context, network, address string, c syscall.RawConn) error {
		return e.guard.Control(ctx, network, address, c)
	}}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    e.opts.DialTimeout,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxConnsPerHost:        maxPerHost,
		IdleConnTimeout:        e.opts.IdleTimeout,
		MaxResponseHeaderBytes: maxAnswerHead,
		DisableCompression:     true, // a response is as large as it seems
	}
}

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

// call sends a request to the data source s and reads the whole response. Failures are
// logged, as clients are not told the cause.
func (s *source) call(r *run, method, url string, header http.Header, body []byte) (outcome, error) {
	ctx, cancel := context.WithTimeout(r.ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return outcome{}, s.failed(r, err)
	}
	if header != nil {
		req.Header = header
	}
	if len(body) == 0 {
		req.Body, req.GetBody, req.ContentLength = http.NoBody, nil, 0
	}
	resp, err := s.graph.engine.transport.RoundTrip(req)
	if err != nil {
		return outcome{}, s.failed(r, err)
	}
	defer resp.Body.Close()
	out := outcome{status: resp.StatusCode}
	out.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return outcome{}, s.failed(r, err)
	case len(out.body) > maxAnswer:
		return outcome{}, s.faultf(r, "the response has more than %d bytes", maxAnswer)
	case resp.Header.Get("Content-Encoding") != "" && resp.Header.Get("Content-Encoding") != "identity":
		return outcome{}, s.faultf(r, "the response is compressed, which was not asked for")
	}
	return out, nil
}

func (s *source) failed(r *run, err error) error {
	s.graph.engine.opts.Log.Warn("data source failed", "api", s.graph.api, "source", s.Name, "err", err)
	timeout, ok := errors.AsType[net.Error](err)
	_, denied := errors.AsType[*dialguard.DeniedError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout():
		return s.faultf(r, "no answer within %s", s.timeout.Round(time.Millisecond))
	case denied || errors.Is(err, dialguard.ErrNever) || errors.Is(err, dialguard.ErrPrivate):
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
