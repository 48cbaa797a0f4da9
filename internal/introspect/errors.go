package introspect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/dialguard"
)

// Cause is why a schema could not be fetched.
type Cause string

// The causes.
const (
	Unusable    Cause = "unusable"     // the definition has no upstream
	Forbidden   Cause = "forbidden"    // the upstream's address may not be called
	UnknownHost Cause = "unknown_host" // its name does not resolve
	Unreachable Cause = "unreachable"  // no connection, or a broken one
	BadTLS      Cause = "tls"          // a certificate is refused
	TooSlow     Cause = "timeout"
	Denied      Cause = "denied"     // 401 or 403
	BadStatus   Cause = "status"     // a status other than 200
	NotGraphQL  Cause = "no_graphql" // the response is not GraphQL
	Disabled    Cause = "disabled"   // introspection is switched off
	Refused     Cause = "refused"    // a GraphQL error of another kind
	TooLarge    Cause = "too_large"
	NoSDL       Cause = "no_sdl" // it is a GraphQL server that does not report a schema for federation
)

// Error is the error of a fetch.
type Error struct {
	Cause   Cause
	Status  int    // of the upstream's response; 0 without one
	Message string // about the upstream, "it …": one line without secrets
	err     error
}

// Error returns the message.
func (e *Error) Error() string { return "introspecting the upstream: " + e.Message }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.err }

// Remedy returns what an administrator of the API can do.
func (e *Error) Remedy() string {
	switch e.Cause {
	case Unusable, UnknownHost, Unreachable, TooSlow:
		return "check proxy.target_url, and that the admin can reach the upstream"
	case Forbidden:
		if errors.Is(e.err, dialguard.ErrPrivate) {
			return "set admin.private_upstreams to allow if upstreams may be in private networks"
		}
		return "check proxy.target_url"
	case BadTLS:
		return "check proxy.transport (authorities, server name, client certificate) and upstream_certificates"
	case Denied:
		return "put what the upstream asks for into graphql.proxy.auth_headers, or name a client certificate"
	case Disabled:
		return "switch introspection on at the upstream for graphql.proxy.auth_headers, or give the schema in graphql.schema"
	case TooLarge:
		return "give the schema in graphql.schema"
	case NoSDL:
		return "give the schema with the directives of federation in graphql.subgraph.sdl"
	}
	return "check that proxy.target_url is the upstream's GraphQL endpoint, or give the schema in graphql.schema"
}

// disabled matches messages of servers whose introspection is off.
var disabled = regexp.MustCompile(`(?i)introspection.*(disabled|not allowed|not enabled|not permitted|forbidden|not authori[sz]ed|not supported|turned off|blocked)` +
	`|(disabled|disallowed|not allowed|forbidden|blocked).*introspection|cannot query field "__schema"|'__schema' doesn't exist`)

// refused returns the error for a GraphQL error.
func refused(status int, message string) *Error {
	e := &Error{Cause: Refused, Status: status, Message: "it refuses to be introspected: " + short(message)}
	switch {
	case disabled.MatchString(message):
		e.Cause, e.Message = Disabled, "introspection is switched off there: "+short(message)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Cause, e.Message = Denied, fmt.Sprintf("it answers %d: %s", status, short(message))
	}
	return e
}

// unreachable classifies the error of a call without a response.
func unreachable(ctx context.Context, err error, within time.Duration) *Error {
	e := &Error{Cause: Unreachable, err: err}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, dialguard.ErrNever), errors.Is(err, dialguard.ErrPrivate):
		e.Cause, e.Message = Forbidden, "it must not be called: "+guardText(err)
	case ctx.Err() != nil, isNetwork && network.Timeout():
		e.Cause, e.Message = TooSlow, fmt.Sprintf("it did not answer within %s", within)
	case isDNS && dns.IsNotFound:
		e.Cause, e.Message = UnknownHost, "its name is not known: "+short(dns.Name)
	case isDNS:
		e.Cause, e.Message = UnknownHost, "its name cannot be looked up: "+short(dns.Err)
	case isTLS(err):
		e.Cause, e.Message = BadTLS, "TLS: "+short(cause(err))
	case isOp && op.Op == "dial":
		e.Message = "no connection: " + short(cause(op.Err))
	default:
		e.Message = "the connection broke: " + short(cause(err))
	}
	return e
}

// guardText returns the guard's message, without outer layers.
func guardText(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if text := inner.Error(); strings.HasPrefix(text, "host ") {
			return text
		}
	}
	return err.Error()
}

// cause returns the innermost message, without addresses.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		if _, known := errors.AsType[*tls.CertificateVerificationError](err); known && isVerdict(inner) {
			return inner.Error()
		}
		err = inner
	}
}

// isVerdict reports whether an error describes a problem of a certificate. Its cause is
// less specific.
func isVerdict(err error) bool {
	switch err.(type) {
	case x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError:
		return true
	}
	return false
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	text := err.Error()
	return strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") || strings.Contains(text, "server gave HTTP response to HTTPS client")
}
