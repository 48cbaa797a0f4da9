package cache

import (
	"bytes"
	"slices"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/http1"
)

// callers are headers in which upstreams commonly expect who calls, and that none of the
// words of names shows. The gateway of a keyless API does not know which of them the
// upstream uses.
var callers = []string{"x-user", "x-user-id", "x-remote-user", "remote-user", "x-client-cert", "x-client-dn", "x-ssl-client-cert", "x-ssl-client-dn"}

// names are the headers whose values are part of the cache key: some by their name, in
// lower case, and all with a word that says what upstreams use them for.
type names struct {
	list    []string
	lengths uint64 // bit n: there is a name of n bytes
	shared  bool   // credentials are not part of the key
}

// namesFor returns the names for an API. Credentials are not part of the key of shared
// responses.
func namesFor(def *definition.API, shared bool) names {
	n := names{shared: shared}
	if !shared {
		n.list = slices.Clone(callers)
		n.list = append(n.list, normal(def.Token().Header()))
		for _, place := range def.AuthConfigs {
			if place != nil {
				n.list = append(n.list, normal(place.Header()))
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

// has reports whether a header is part of the cache key.
func (n *names) has(name []byte) bool {
	if is(name, "x-original-forwarded-for") { // who the client is, as in X-Forwarded-For
		return false
	}
	if n.lengths>>(len(name)&63)&1 == 1 && slices.ContainsFunc(n.list, func(one string) bool { return is(name, one) }) {
		return true
	}
	for start := 0; start < len(name); {
		end := start
		for end < len(name) && http1.VariableByte(name[end]) != '-' {
			end++
		}
		if word := name[start:end]; len(word) > 0 && (redirects(word) || !n.shared && authenticates(word)) {
			return true
		}
		start = end + 1
	}
	return false
}

// redirects reports whether a word of a header's name says that upstreams may take the
// header for the method, path or host of the call. Without it in the cache key, a client
// could choose the response that other callers get.
func redirects(word []byte) bool {
	switch http1.VariableByte(word[0]) {
	case 'h':
		return begins(word, "host")
	case 'm':
		return begins(word, "method")
	case 'o':
		return begins(word, "override") || begins(word, "original")
	case 'p':
		return begins(word, "path") || begins(word, "proto")
	case 'r':
		return begins(word, "rewrite")
	case 's':
		return begins(word, "scheme")
	case 'u':
		return begins(word, "url") || begins(word, "uri")
	}
	return false
}

// authenticates reports whether a word of a header's name says that the header has a
// credential.
func authenticates(word []byte) bool {
	switch http1.VariableByte(word[0]) {
	case 'a':
		if begins(word, "auth") || begins(word, "apikey") || begins(word, "assertion") {
			return true
		}
	case 'c':
		if begins(word, "credential") {
			return true
		}
	case 'j':
		if begins(word, "jwt") {
			return true
		}
	case 'p':
		if begins(word, "passw") {
			return true
		}
	case 's':
		if begins(word, "secret") || begins(word, "session") || begins(word, "signature") {
			return true
		}
	case 't':
		if begins(word, "token") {
			return true
		}
	}
	switch http1.VariableByte(word[len(word)-1]) { // as in X-ApiToken
	case 'd':
		return ends(word, "password")
	case 'h':
		return ends(word, "auth")
	case 'n':
		return ends(word, "token") || ends(word, "session")
	case 't':
		return ends(word, "secret") || ends(word, "jwt")
	case 'y':
		return ends(word, "key")
	}
	return false
}

// normal folds a name.
func normal(name string) string {
	b := []byte(name)
	for i, c := range b {
		b[i] = http1.VariableByte(c)
	}
	return string(b)
}

// is reports whether a header's name is a folded one.
func is(name []byte, folded string) bool { return len(name) == len(folded) && begins(name, folded) }

func begins(word []byte, folded string) bool {
	if len(word) < len(folded) {
		return false
	}
	for i := range len(folded) {
		if http1.VariableByte(word[i]) != folded[i] {
			return false
		}
	}
	return true
}

func ends(word []byte, folded string) bool {
	return len(word) >= len(folded) && begins(word[len(word)-len(folded):], folded)
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
			if s.names.has(call.NameOf(f)) && !(isKey && isToken(call.ValueOf(f), ex.Token)) {
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
