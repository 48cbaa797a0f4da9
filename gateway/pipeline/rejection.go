package pipeline

import (
	"bytes"
	"encoding/json"
	"encoding/xml"

	"github.com/sluicegate/sluice/internal/event"
)

// Reason is why a request was refused or failed. The list is closed, and shared by
// metrics, access log and response header.
type Reason uint8

// The reasons.
const (
	ReasonNone Reason = iota
	ReasonRouteNotFound
	ReasonBadRequest // ambiguous framing, path or header
	ReasonHeaderTooLarge
	ReasonURLTooLong
	ReasonBodyTooLarge
	ReasonRequestTimeout
	ReasonOverloaded
	ReasonAuthMissing
	ReasonAuthUnknown
	ReasonAuthInactive
	ReasonAuthExpired
	ReasonAccessDenied
	ReasonURLDenied
	ReasonRateLimit
	ReasonQuotaExceeded
	ReasonCounterUnavailable
	ReasonKeyStoreUnavailable
	ReasonUpstreamLookup
	ReasonUpstreamConnect
	ReasonUpstreamTLS
	ReasonUpstreamReset
	ReasonUpstreamMalformed
	ReasonUpstreamTimeout
	ReasonUpstreamBusy
	ReasonClientGone
	ReasonNotServed // the definition has never compiled here
	ReasonGraphQLInvalid
	ReasonGraphQLTooLarge // above a ceiling for all clients
	ReasonGraphQLMedia    // a content type, encoding or Accept that GraphQL over HTTP does not support
	ReasonMethodNotAllowed
	ReasonDepthLimit
	ReasonOperationLimit // aliases, root fields, directives, tokens or cost of a key
	ReasonFieldRestricted
	ReasonIntrospectionDisabled
	ReasonUntrustedDocument
	ReasonSchemaBroken
	ReasonTokenMalformed // no JSON Web Token
	ReasonTokenSignature // key, algorithm or signature of one
	ReasonTokenClaims    // claims of one
	ReasonAddressDenied
	ReasonAuthMalformed  // a credential of the wrong form
	ReasonAuthThrottled  // too many wrong passwords lately
	ReasonVersionMissing // no version is named, and there is no default
	ReasonVersionUnknown
	ReasonVersionExpired
	ReasonVersionDenied // not among those of the key
	ReasonPathDenied    // by a list of paths
	ReasonLengthRequired
	ReasonAPIRateLimit // of all callers of an API, or of some of its paths
	ReasonOrgQuota
	ReasonOrgRateLimit
	ReasonOrgInactive
	ReasonTLSRequired // the API requires certificates, and the connection has no TLS
	ReasonCertificateMissing
	ReasonCertificateExpired
	ReasonCertificateDenied // of a client: not listed, unknown, or another than the key's
	ReasonBreakerOpen       // of the upstream: too many calls to it have failed
	ReasonInternalLoop      // too many internal calls
	ReasonInternalTarget    // the API of an internal call is not served
	ReasonTunnelLimit       // connections that left HTTP, of a key or an API
	ReasonMessageRefused    // of an event stream, by a processor
	ReasonStreamUnavailable // an event stream does not take messages, or clients, now
	ReasonStreamTimeout     // an event stream has not said whether it has passed a message on
	ReasonStreamFailed      // an event stream cannot pass a message on
	reasons
)

var reasonNames = [reasons]string{
	"", "route_not_found", "bad_request", "header_too_large", "url_too_long", "body_too_large",
	"request_timeout", "overloaded", "auth_missing", "auth_unknown", "auth_inactive", "auth_expired",
	"access_denied", "url_denied", "rate_limit", "quota_exceeded", "counter_unavailable",
	"key_store_unavailable", "upstream_lookup", "upstream_connect", "upstream_tls", "upstream_reset",
	"upstream_malformed", "upstream_timeout", "upstream_busy", "client_gone", "not_served",
	"graphql_invalid", "graphql_too_large", "graphql_media", "method_not_allowed", "depth_limit",
	"operation_limit", "field_restricted", "introspection_disabled", "untrusted_document", "schema_broken",
	"token_malformed", "token_signature", "token_claims", "address_denied", "auth_malformed",
	"auth_throttled",
	"version_missing", "version_unknown", "version_expired", "version_denied", "path_denied", "length_required",
	"api_rate_limit", "org_quota", "org_rate_limit", "org_inactive",
	"tls_required", "certificate_missing", "certificate_expired", "certificate_denied",
	"breaker_open", "handover_loop", "handover_target", "tunnel_limit",
	"message_refused", "stream_unavailable", "stream_timeout", "stream_failed",
}

// String returns the reason's name on the wire, "" for ReasonNone.
func (r Reason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return reasonNames[r]
}

// Reasons returns every reason but ReasonNone.
func Reasons() []Reason {
	all := make([]Reason, 0, reasons-1)
	for r := Reason(1); r < reasons; r++ {
		all = append(all, r)
	}
	return all
}

// A Rejection is an error answer. It is made when configuration loads, so that
// refusing a request allocates nothing.
type Rejection struct {
	Reason    Reason     // why, for logs and metrics
	Status    int        // HTTP status
	Message   string     // what the client reads
	Event     event.Name // raised on refusal; "" for none
	PlainText bool       // the body is Message itself, as text/plain
	Allow     string     // value of the Allow header; "" for none
	Challenge string     // value of the WWW-Authenticate header; "" for none
	Wording   Text       // that operators may replace; TextNone: none

	json, xml, text []byte
	graphql         bool
}

// NewGraphQLRejection returns a rejection with a GraphQL error answer as body for all
// clients. message is for logs and events.
func NewGraphQLRejection(reason Reason, status int, message string, body []byte) *Rejection {
	return &Rejection{Reason: reason, Status: status, Message: message, json: body, graphql: true}
}

// GraphQL reports whether JSON is a GraphQL answer, which is sent in the media type of
// the exchange.
func (r *Rejection) GraphQL() bool { return r.graphql }

// NewRejection returns a rejection with its bodies rendered.
func NewRejection(reason Reason, status int, message string) *Rejection {
	r := &Rejection{Reason: reason, Status: status, Message: message}
	r.json = renderJSON(message)
	r.xml = renderXML(message)
	r.text = []byte(message)
	return r
}

// Raising returns r after setting the event that it raises.
func (r *Rejection) Raising(name event.Name) *Rejection {
	r.Event = name
	return r
}

// JSON returns the body for most clients. The caller must not change it.
func (r *Rejection) JSON() []byte { return r.json }

// XML returns the body for clients that sent XML. The caller must not change it.
func (r *Rejection) XML() []byte { return r.xml }

// Text returns the message. The caller must not change it.
func (r *Rejection) Text() []byte { return r.text }

func renderJSON(message string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	_ = enc.Encode(struct { // a struct of one string always encodes
		Error string `json:"error"`
	}{message})
	return bytes.TrimRight(b.Bytes(), "\n")
}

func renderXML(message string) []byte {
	b := bytes.NewBufferString(xml.Header + "<error>")
	_ = xml.EscapeText(b, []byte(message)) // a buffer's Write never errs
	b.WriteString("</error>")
	return b.Bytes()
}
