package cache

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/http1"
)

// redirecting are headers by which many upstreams replace the method, path or host of
// a call. Without them in the cache key, a client could choose the response that other
// callers get.
var redirecting = []string{
	"x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url", "x-host", "x-original-host",
}

// credentials are headers in which upstreams commonly expect credentials. The gateway
// of a keyless API does not know which of them the upstream uses.
var credentials = []string{"api-key", "apikey", "x-api-key", "x-access-token", "x-auth-token", "x-session-token"}

// names are the headers whose values are part of the cache key, in lower case.
type names struct {
	list    []string
	lengths uint64 // bit n: there is a name of n bytes
}

// namesFor returns the names for an API. Credentials are not part of the key of shared
// responses.
func namesFor(def *definition.API, shared bool) names {
	n := names{list: slices.Clone(redirecting)}
	if !shared {
		n.list = append(n.list, credentials...)
		n.list = append(n.list, strings.ToLower(def.Token().Header()))
		for _, place := range def.AuthConfigs {
			if place != nil {
				n.list = append(n.list, strings.ToLower(place.Header()))
			}
		}
	}
	slices.Sort(n.list)
	n.list = slices.Compact(n.list)
	for _, name := range n.list {
		n.lengths |= 1 << (len(name) & 63)
	}
	return n
}

// AsksAsUsual reports whether the credentials of an API are in the standard headers:
// an API that calls this one has only those in its cache key.
func AsksAsUsual(def *definition.API) bool {
	return slices.Equal(namesFor(def, false).list, usualNames.list)
}

var usualNames = namesFor(&definition.API{}, false)

// has reports whether a field has one of the names.
func (n *names) has(call *wire.Call, f *wire.Field) bool {
	if n.lengths>>((f.Colon-f.Start)&63)&1 == 0 {
		return false
	}
	for _, one := range n.list {
		if call.Is(f, one) {
			return true
		}
	}
	return false
}

// appendSent appends what the upstream may identify the caller by, beside the key, and
// what it may select the resource by, beside method and path.
func (s *Stage) appendSent(dst []byte, ex *pipeline.Exchange) []byte {
	call := ex.Call
	if call.TLS {
		dst = append(dst, 's') // X-Forwarded-Proto: upstreams may redirect plain HTTP
	}
	// A token is the key, which is there already; a JSON Web Token holds more.
	isKey := s.own && len(ex.Token) > 0 && ex.Claims == nil
	if ex.Claims != nil && !s.opts.Shared {
		dst = s.appendSum(dst, 'j', ex.Token)
	}
	for i := range call.Fields {
		f := &call.Fields[i]
		switch f.Name {
		case wire.NameOther:
			if s.names.has(call, f) && !(isKey && isToken(call.ValueOf(f), ex.Token)) {
				dst = s.appendSum(dst, 'h', call.Lines[f.Start:f.End])
			}
		case wire.NameAuthorization:
			if value := call.ValueOf(f); !s.opts.Shared && !(isKey && isToken(value, ex.Token)) {
				dst = s.appendSum(dst, 'a', value)
			}
		case wire.NameCookie:
			if !s.opts.Shared {
				dst = s.appendSum(dst, 'c', call.ValueOf(f))
			}
		case wire.NameXForwarded, wire.NameXForwardedHost, wire.NameXForwardedPort, wire.NameXForwardedProto:
			dst = s.appendSum(dst, 'f', call.Lines[f.Start:f.End])
		case wire.NameForwarded:
			dst = s.appendForwarded(dst, call.ValueOf(f))
		}
	}
	return dst
}

// appendForwarded appends what a Forwarded line says of where the client came in,
// but not of who it is.
func (s *Stage) appendForwarded(dst, list []byte) []byte {
	for len(list) > 0 {
		end := bytes.IndexAny(list, ",;")
		if end < 0 {
			end = len(list)
		}
		pair := http1.Trim(list[:end])
		if http1.HasPrefix(pair, "host=") || http1.HasPrefix(pair, "proto=") {
			dst = s.appendSum(dst, 'f', pair)
		}
		list = list[min(end+1, len(list)):]
	}
	return dst
}

// isToken reports whether an Authorization line holds a token and nothing else.
func isToken(sent, token []byte) bool {
	scheme, found := bytes.CutSuffix(sent, token)
	return found && (len(scheme) == 0 || len(scheme) == len("Bearer ") && http1.EqualFold(scheme, "bearer "))
}

// goesUp reports whether the client's headers go upstream as they are. One that it
// names in Connection does not, and must not be taken for what an answer depends
// on.
func goesUp(call *wire.Call) bool {
	for i := range call.Fields {
		f := &call.Fields[i]
		if f.Name != wire.NameConnection {
			continue
		}
		for list := call.ValueOf(f); len(list) > 0; {
			var one []byte
			one, list = http1.CutElement(list)
			if len(one) > 0 && !http1.EqualFold(one, "keep-alive") && !http1.EqualFold(one, "close") && !http1.EqualFold(one, "te") {
				return false
			}
		}
	}
	return true
}
