package endpoint

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// maxMeta is how many values of metadata a request gives a message.
const maxMeta = 128

// reserved begins the names of what the gateway itself says of a request. What a client
// sends under such a name is left out.
const reserved = "http_server_"

// secrets are the names under which requests carry credentials.
type secrets struct{ headers, params []string }

// facts are what connectors need to know of the API that a request reaches.
type facts struct {
	def     *definition.API
	secrets secrets
	origins *match.Origins // of pages that may call the API; nil: it says nothing about them
}

// known keeps the facts of the API that was served last: nearly always it is the same.
type known struct{ last atomic.Pointer[facts] }

func (k *known) of(def *definition.API) *facts {
	if f := k.last.Load(); f != nil && f.def == def {
		return f
	}
	f := &facts{def: def, secrets: secretsOf(def)}
	if def.CORS.On() {
		pages := match.CompileOrigins(def.CORS.Origins())
		f.origins = &pages
	}
	k.last.Store(f)
	return f
}

// secretsOf returns the names of an API. They are lower-case.
func secretsOf(def *definition.API) secrets {
	s := secrets{headers: []string{"authorization", "proxy-authorization", "cookie", "x-svc-authorization"}}
	for i := range definition.AuthModes {
		place := def.Place(definition.AuthModes[i].Config)
		s.headers = append(s.headers, strings.ToLower(place.Header()))
		s.params = append(s.params, strings.ToLower(place.Header()))
		if place.ParamName != "" {
			s.params = append(s.params, strings.ToLower(place.ParamName))
		}
	}
	return s
}

// metadata collects the metadata of a request. The first value of a name counts.
type metadata struct {
	all    []stream.Meta
	tokens [][]byte // credentials: no value has one
}

func (m *metadata) add(name, value string) {
	if len(m.all) >= maxMeta || slices.ContainsFunc(m.all, func(one stream.Meta) bool { return one.Name == name }) {
		return
	}
	for _, token := range m.tokens {
		if strings.Contains(value, string(token)) {
			return
		}
	}
	m.all = append(m.all, stream.Meta{Name: name, Value: value})
}

// sent adds what the client has written, under a name that is lower-case.
func (m *metadata) sent(name, value string, hidden []string) {
	if name != "" && !strings.HasPrefix(name, reserved) && !slices.Contains(hidden, name) {
		m.add(name, value)
	}
}

// metaOf returns the metadata of a request, without any credential.
func (k *known) metaOf(ex *pipeline.Exchange, path []stream.Meta) []stream.Meta {
	m := &metadata{all: make([]stream.Meta, 0, 8+len(ex.Call.Fields))}
	hidden := k.of(ex.API.Definition).secrets
	for front := ex; front != nil; front = front.Parent {
		if len(front.Token) > 0 {
			m.tokens = append(m.tokens, front.Token)
		}
		if front != ex { // the credential of an API that made the internal call
			more := secretsOf(front.API.Definition)
			hidden = secrets{slices.Concat(hidden.headers, more.headers), slices.Concat(hidden.params, more.params)}
		}
	}
	m.add(reserved+"request_path", string(ex.Path))
	m.add(reserved+"verb", string(ex.Call.Method))
	m.add(reserved+"remote_ip", ex.Client.String())
	m.add(reserved+"user_agent", string(ex.Call.Get(wire.NameUserAgent)))
	for _, p := range path {
		m.sent(strings.ToLower(p.Name), p.Value, nil)
	}
	lines := string(ex.Call.Lines) // one copy, of which names and values are parts
	names := lowered(lines)
	for i := range ex.Call.Fields {
		f := &ex.Call.Fields[i]
		m.sent(names[f.Start:f.Colon], lines[f.From:f.To], hidden.headers)
	}
	for query := ex.Call.Query; len(query) > 0 && len(m.all) < maxMeta; {
		var one []byte
		one, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(one, []byte{'='})
		plain, err := url.QueryUnescape(string(name))
		text, err2 := url.QueryUnescape(string(value))
		if err == nil && err2 == nil {
			m.sent(strings.ToLower(plain), text, hidden.params)
		}
	}
	return m.all
}

// lowered returns a text with its ASCII letters lower-case, at the same places.
func lowered(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := range len(text) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// maxID is the longest id of a message that a client chooses, in bytes.
const maxID = 128

var badID = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "Idempotency-Key must have 1 to 128 printable ASCII characters without blanks")

// idOf returns the id of the message that a request carries.
func idOf(call *wire.Call) (string, *pipeline.Rejection) {
	given := call.Header("Idempotency-Key")
	switch {
	case given == nil:
		return stream.NewID(), nil
	case len(given) == 0 || len(given) > maxID || slices.ContainsFunc(given, func(c byte) bool { return c <= ' ' || c > '~' }):
		return "", badID
	}
	return string(given), nil
}
