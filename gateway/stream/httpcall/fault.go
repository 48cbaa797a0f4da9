package httpcall

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/dialguard"
)

// A StatusError is a response that is no success.
type StatusError struct {
	Verb, Host string
	Status     int
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: status %d", e.Verb, e.Host, e.Status)
}

// A dialError is a connection that could not be made. Its text names an address and the cause.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// marked tells errors of dialling from those of connections.
func marked(dial stream.Dialer) stream.Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
}

func (c *Call) failf(class stream.Class, format string, args ...any) *stream.Failure {
	return stream.Failf(class, "%s %s: %w", c.plan.of.Verb, c.url.Host, fmt.Errorf(format, args...))
}

// fault returns the failure of a call that has no whole response. The server may have got the
// request if there was a connection.
func (c *Call) fault(what string, err error, connected bool) *stream.Failure {
	class := stream.Transient
	if connected {
		class = stream.Unknown
	}
	return c.failf(class, "%s%w", what, c.cause(err))
}

// cause returns an error whose text has nothing that the server has sent: errors of net/http
// quote it.
func (c *Call) cause(err error) error {
	if dial, ok := errors.AsType[*dialError](err); ok && !late(err) {
		return dial.error
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	var (
		untrusted *tls.CertificateVerificationError
		alert     tls.AlertError
		plain     tls.RecordHeaderError
	)
	switch {
	case late(err):
		return fmt.Errorf("no answer within %v", c.plan.of.Timeout)
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &untrusted):
		return untrusted
	case errors.As(err, &alert):
		return alert
	case errors.As(err, &plain), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return errors.New("the server does not speak TLS")
	case strings.Contains(err.Error(), "response headers exceeded"):
		return fmt.Errorf("the headers of the response have more than %d bytes", maxHeaderBytes)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), strings.Contains(err.Error(), "server closed idle connection"):
		return errors.New("the connection was closed")
	}
	return errors.New("the response is not HTTP/1.1")
}

func late(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

// Mends reports whether a failure may end without a change of the configuration.
func Mends(f *stream.Failure) bool {
	_, denied := errors.AsType[*dialguard.DeniedError](f)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](f)
	return f.Class != stream.Permanent && !denied && !untrusted
}
