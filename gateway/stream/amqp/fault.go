package amqp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
)

// setupError is why a channel could not be used: the broker refused a declaration.
type setupError struct {
	what string
	err  error
}

func (e *setupError) Error() string { return e.what + ": " + e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }

// lasting reports whether an error will not mend without a change of the configuration
// here or of the broker.
func lasting(err error) bool {
	if stream.ClassOf(err) == stream.Permanent {
		return true // such as an address that is never called
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	reply, ok := errors.AsType[*amqp.Error](err)
	if !ok || !reply.Server {
		return false
	}
	switch reply.Code {
	case amqp.AccessRefused, amqp.NotAllowed:
		return true
	case amqp.PreconditionFailed:
		_, declared := errors.AsType[*setupError](err)
		return declared
	}
	return false
}

// refusal reports whether the broker has closed a channel because of something that was
// sent on it.
func refusal(err error) bool {
	reply, ok := errors.AsType[*amqp.Error](err)
	return ok && reply.Server && reply.Recover
}

// unconfirmed returns what a message of a size is settled with when its epoch has ended.
func unconfirmed(why error, size int) error {
	if reply, ok := errors.AsType[*amqp.Error](why); ok {
		var refused, limit int
		n, _ := fmt.Sscanf(reply.Reason, "PRECONDITION_FAILED - message size %d is larger than configured max size %d", &refused, &limit)
		if n == 2 && size > limit {
			return stream.Failf(stream.Permanent, "the message has %d bytes, and the broker takes %d", size, limit)
		}
	}
	return &stream.Failure{Class: stream.Unknown, Err: why}
}

// refusedLogins is after how many refused logins in a row it is the credentials: the library
// cannot tell them from a connection that is lost during the handshake.
const refusedLogins = 3

// A pacer says how long to wait between epochs.
type pacer struct {
	timing           *timing
	failures, logins int // in a row
}

// next returns the pause after an epoch that lasted so long and ended with an error, and
// whether the next one will end in the same way. Without a connection there is no pause:
// the pool makes one between its attempts to connect.
func (p *pacer) next(err error, connected bool, lasted time.Duration) (pause time.Duration, failing bool) {
	if lasted > p.timing.stable {
		p.failures = 0
	}
	p.failures++
	if errors.Is(err, amqp.ErrCredentials) || errors.Is(err, amqp.ErrVhost) || errors.Is(err, amqp.ErrSASL) {
		p.logins++
	} else {
		p.logins = 0
	}
	switch {
	case lasting(err):
		return p.timing.lasting, true
	case connected:
		return p.timing.pause(p.failures), false
	}
	return 0, p.logins >= refusedLogins
}
