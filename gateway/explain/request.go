package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/usage"
)

// A Request describes the request to explain, or names by ID one that was refused.
type Request struct {
	ID string `json:"id,omitempty"` // X-Request-Id of a refusal; all other members are empty then

	Method  string  `json:"method,omitempty"` // default GET
	URL     string  `json:"url,omitempty"`    // http://host/path?query, or a path
	Headers Headers `json:"headers,omitempty"`
	Body    string  `json:"body,omitempty"`
	Bytes   []byte  `json:"body_base64,omitempty"` // the body when it is no text
	Key     string  `json:"key,omitempty"`         // sent where the API expects keys
	KeyHash string  `json:"key_hash,omitempty"`    // identity of the key that calls, in place of a key
	Policy  string  `json:"policy,omitempty"`      // id of the policy that calls as if a key had it alone, in place of a key
	Client  string  `json:"client,omitempty"`      // address that the request comes from; default 127.0.0.1
	TLS     *bool   `json:"tls,omitempty"`         // whether it comes over TLS; default: whether the URL is https

	Certificate string `json:"certificate,omitempty"` // PEM certificate of the client; it implies TLS

	// Revision is that of the configuration to explain by; 0 is the one in force.
	Revision int64 `json:"revision,omitempty"`

	// At is the moment to explain for, RFC 3339; "" is now.
	At string `json:"at,omitempty"`

	// Of a recorded request, see Recorded.
	Policies []string `json:"-"` // ids, of a caller without a stored key
	Length   int64    `json:"-"` // of the body that was not recorded; -1: it came in chunks; 0: there was none, or it is there
	recorded bool

	due    *time.Time
	host   string // that the URL names
	target string
	secure bool
	shown  *wire.Certificate
	peer   netip.Addr
}

// Parse reads a description. The error is a *definition.Problems, which names
// every member that is wrong.
func Parse(data []byte) (*Request, error) {
	r := &Request{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return nil, malformed(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &definition.Problems{{Message: "something follows the JSON object"}}
	}
	if problems := r.check(); len(problems) > 0 {
		return nil, &problems
	}
	return r, nil
}

// malformed says what is wrong with JSON.
func malformed(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &definition.Problems{{Path: wrong.Field, Message: "must not be a JSON " + wrong.Value}}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &definition.Problems{{
			Path:    strings.Trim(name, `"`),
			Message: "is unknown; known are id, method, url, headers, body, body_base64, key, key_hash, policy, client, tls, revision and at",
		}}
	}
	if path, message, ok := strings.Cut(err.Error(), ": "); ok && strings.HasPrefix(path, "headers") {
		return &definition.Problems{{Path: path, Message: message}}
	}
	return &definition.Problems{{Message: "is not a JSON object: " + err.Error()}}
}

// check completes the description and returns what is wrong with it. What a
// gateway refuses of a request is no problem here: that is what is explained.
func (r *Request) check() (problems definition.Problems) {
	add := func(path, message string) {
		problems = append(problems, definition.Problem{Path: path, Message: message})
	}
	if r.ID != "" {
		if !pipeline.IsRequestID(r.ID) {
			add("id", "must be the X-Request-Id of an answer: 32 hexadecimal digits, or the id that the caller sent")
		}
		if !r.isOnlyID() {
			add("id", "stands alone: it names a request that was refused, and all that is known of it")
		}
		return problems
	}
	if r.Method == "" {
		r.Method = "GET"
	}
	r.checkLines(add)
	if why := r.split(); why != "" {
		add("url", why)
	}
	if r.Body != "" && len(r.Bytes) > 0 {
		add("body_base64", "and body are both given; keep one")
	}
	if r.Key != "" && r.KeyHash != "" {
		add("key_hash", "and key are both given; keep one")
	}
	if r.Policy != "" && (r.Key != "" || r.KeyHash != "") {
		add("policy", "and a key are both given; keep one")
	}
	if r.Revision < 0 {
		add("revision", "must be the number of a revision, or 0 for the one in force")
	}
	r.peer = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if r.Client != "" {
		peer, err := netip.ParseAddr(r.Client)
		if err != nil {
			add("client", "must be an address such as 203.0.113.9")
		}
		r.peer = peer.Unmap()
	}
	if r.TLS != nil {
		r.secure = *r.TLS
	}
	r.checkCertificate(add)
	r.checkAt(add)
	return problems
}

// checkAt parses the moment of the explanation.
func (r *Request) checkAt(add func(path, message string)) {
	if r.At == "" {
		return
	}
	at, err := time.Parse(time.RFC3339, r.At)
	if err != nil {
		add("at", "must be a time as in 2030-01-02T15:04:05Z (RFC 3339)")
		return
	}
	if at.Year() < 2000 || at.Year() > 2199 {
		add("at", "must lie between the years 2000 and 2199")
		return
	}
	r.due = &at
}

// Recorded returns the description of a recorded request: at its time, with the key that
// called, or with its policies.
func Recorded(s *usage.Sample) (*Request, error) {
	r := &Request{
		Method: s.Method, URL: s.URL, Body: s.Body, KeyHash: s.Key, Client: s.Client, TLS: &s.TLS, At: s.At.UTC().Format(time.RFC3339),
		Policies: s.Policies, recorded: true,
	}
	if s.Host != "" {
		r.Headers = append(r.Headers, Header{"Host", s.Host})
	}
	for _, line := range s.Headers {
		name, value, _ := strings.Cut(line, ": ")
		if strings.EqualFold(name, "Content-Length") {
			continue
		}
		r.Headers = append(r.Headers, Header{name, value})
	}
	if problems := r.check(); len(problems) > 0 {
		return nil, &problems
	}
	if len(s.Policies) > 0 {
		r.KeyHash = ""
	}
	if s.Body == "" {
		r.Length = s.Length
	}
	for _, line := range s.Headers {
		if line == "Content-Length: 0" {
			r.Headers = append(r.Headers, Header{"Content-Length", "0"})
		}
	}
	return r, nil
}

// IsRecorded reports whether the request was recorded.
func (r *Request) IsRecorded() bool { return r.recorded }

// Due returns the moment of the explanation, nil for now.
func (r *Request) Due() *time.Time { return r.due }

// checkLines refuses what would make other lines of the request than are meant.
func (r *Request) checkLines(add func(path, message string)) {
	const breaks = "\r\n"
	if strings.ContainsAny(r.Method, breaks) || strings.Contains(r.Method, " ") {
		add("method", "must be one word, such as GET")
	}
	if strings.ContainsAny(r.URL, breaks) {
		add("url", "must be on one line")
	}
	if strings.ContainsAny(r.Key, breaks) {
		add("key", "must be on one line")
	}
	for _, h := range r.Headers {
		switch {
		case strings.ContainsAny(h.Name, breaks) || strings.ContainsAny(h.Value, breaks):
			add("headers", "must each be on one line")
		case strings.EqualFold(h.Name, "Content-Length"):
			add("headers", "Content-Length is that of the body; leave it out")
		default:
			continue
		}
		return
	}
}

// split takes the URL apart, and says what is wrong with it.
func (r *Request) split() (why string) {
	sent, _, _ := strings.Cut(r.URL, "#") // stays with the client
	r.target = sent
	if scheme, rest, found := strings.Cut(sent, "://"); found && !strings.ContainsAny(scheme, "/?") {
		switch strings.ToLower(scheme) {
		case "http":
		case "https":
			r.secure = true
		default:
			return "must begin with http:// or https://, or be a path such as /orders/7"
		}
		at := strings.IndexAny(rest, "/?")
		if at < 0 {
			at = len(rest)
		}
		r.host, r.target = rest[:at], rest[at:]
		if r.host == "" {
			return "names no host"
		}
		if !strings.HasPrefix(r.target, "/") {
			r.target = "/" + r.target
		}
	}
	if !strings.HasPrefix(r.target, "/") && r.target != "*" {
		return "must be a URL such as http://localhost:8080/orders/7, or a path such as /orders/7"
	}
	return ""
}

func (r *Request) isOnlyID() bool {
	return r.Method == "" && r.URL == "" && len(r.Headers) == 0 && r.Body == "" && len(r.Bytes) == 0 &&
		r.Key == "" && r.KeyHash == "" && r.Policy == "" && r.Client == "" && r.TLS == nil && r.Certificate == "" && r.Revision == 0 && r.At == ""
}

// Peer returns the address at the other end of the connection.
func (r *Request) Peer() netip.Addr { return r.peer }

// Secure reports whether the connection has TLS.
func (r *Request) Secure() bool { return r.secure }

// PathSent returns the path as it is sent.
func (r *Request) PathSent() string {
	path, _, _ := strings.Cut(r.target, "?")
	return path
}

// content returns the body.
func (r *Request) content() []byte {
	if len(r.Bytes) > 0 {
		return r.Bytes
	}
	return []byte(r.Body)
}

// WithHeader returns the request with one more header line.
func (r *Request) WithHeader(name, value string) *Request {
	more := *r
	more.Headers = append(r.Headers[:len(r.Headers):len(r.Headers)], Header{name, value})
	return &more
}

// Raw returns the bytes that a client would send over HTTP/1.1. A body that is
// sent in chunks stands there without their frames.
func (r *Request) Raw() []byte {
	var b bytes.Buffer
	b.WriteString(r.Method + " " + r.target + " HTTP/1.1\r\n")
	if host := r.host; !r.Headers.has("Host") {
		if host == "" {
			host = "localhost"
		}
		b.WriteString("Host: " + host + "\r\n")
	}
	for _, h := range r.Headers {
		b.WriteString(h.Name + ": " + h.Value + "\r\n")
	}
	body := r.content()
	if len(body) > 0 && !r.Headers.has("Transfer-Encoding") {
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// WithKey returns the request with its key where a definition says that keys
// are.
func (r *Request) WithKey(at *definition.Auth) *Request {
	name := at.Header()
	or := func(own string) string {
		if own == "" {
			return name
		}
		return own
	}
	switch {
	case !at.DisableHeader:
		return r.WithHeader(name, r.Key)
	case at.UseParam:
		more := *r
		between := "?"
		if strings.Contains(r.target, "?") {
			between = "&"
		}
		more.target += between + url.QueryEscape(or(at.ParamName)) + "=" + url.QueryEscape(r.Key)
		return &more
	case at.UseCookie:
		return r.WithHeader("Cookie", or(at.CookieName)+"="+r.Key)
	}
	return r
}
