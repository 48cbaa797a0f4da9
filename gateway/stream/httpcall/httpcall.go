// Package httpcall makes the calls by HTTP of event streams: for http_client in both
// directions, and for the processor http. Calls are HTTP/1.1, follow no redirect and use no
// proxy. Errors name the host and the status, and nothing else that was sent or received.
package httpcall

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

const (
	maxHeaderBytes   = 64 << 10 // of a response
	maxIdle          = 256      // connections of a pool that wait for another call
	maxIdlePerHost   = 16
	idleFor          = 30 * time.Second
	handshakeTimeout = 10 * time.Second
)

// A Pool has the connections of calls: at most 256 that wait for another call, for up to 30
// seconds. All that uses the same pool shares them.
type Pool struct{ verified, unverified *http.Transport }

// NewPool returns a pool whose connections are made by dial.
func NewPool(dial stream.Dialer) *Pool {
	return &Pool{verified: transport(dial, false), unverified: transport(dial, true)}
}

// Transport returns what makes calls, with or without a check of the server's certificate.
// It is for stream.Site.
func (p *Pool) Transport(skipVerify bool) http.RoundTripper {
	if skipVerify {
		return p.unverified
	}
	return p.verified
}

// Close closes the connections that wait for another call.
func (p *Pool) Close() {
	p.verified.CloseIdleConnections()
	p.unverified.CloseIdleConnections()
}

func transport(dial stream.Dialer, skipVerify bool) *http.Transport {
	return &http.Transport{
		DialContext:            marked(dial),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skipVerify}, //nolint:gosec // if the configuration says so
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleFor,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // a response is as large as it seems
	}
}

// A Plan is the compiled request of a connector or processor.
type Plan struct {
	of      *streams.HTTPRequest
	url     *mapping.Template
	fixed   *url.URL          // nil: the address depends on the message
	body    *mapping.Template // nil: the body is given
	headers []header
	base    http.Header // the headers that are the same for each call
	trips   http.RoundTripper
	own     *http.Transport // nil: the connections are shared
	limit   int
}

type header struct {
	name  string
	value *mapping.Template
}

// New compiles a request. The error names the field at fault.
func New(of *streams.HTTPRequest, site *stream.Site) (*Plan, error) {
	p := &Plan{of: of, base: http.Header{"User-Agent": {"sluice"}}, limit: site.MaxMessageBytes}
	if of.MaxResponseBytes > 0 {
		p.limit = min(p.limit, of.MaxResponseBytes)
	}
	var faults []error
	compile := func(field string, text streams.Template) *mapping.Template {
		t, err := mapping.CompileTemplate(string(text))
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%w", field, err))
			t = &mapping.Template{}
		}
		return t
	}
	p.url = compile("url", of.URL)
	if of.Body != "" {
		p.body = compile("body", of.Body)
	}
	for _, one := range of.Headers {
		value := compile("headers."+one.Name, one.Value)
		if text, ok := value.Static(); ok && !hasControl(text) {
			p.base.Set(one.Name, text)
			continue
		}
		p.headers = append(p.headers, header{http.CanonicalHeaderKey(one.Name), value})
	}
	if text, ok := p.url.Static(); ok && len(faults) == 0 {
		var err error
		if p.fixed, err = parse(text); err != nil {
			faults = append(faults, fmt.Errorf("url: %w", err))
		}
	}
	if hasControl(string(of.Bearer)) {
		faults = append(faults, errors.New("auth.bearer: has control characters"))
	}
	switch {
	case of.Bearer != "":
		p.base.Set("Authorization", "Bearer "+string(of.Bearer))
	case of.BasicUser != "":
		p.base.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(of.BasicUser+":"+string(of.BasicPassword))))
	}
	switch {
	case site.HTTP != nil:
		p.trips = site.HTTP(of.SkipVerify)
	case site.Dial != nil:
		p.own = transport(site.Dial, of.SkipVerify)
		p.trips = p.own
	default:
		faults = append(faults, errors.New("nothing can be called here"))
	}
	return p, errors.Join(faults...)
}

// Close closes connections that are not shared and wait for another call.
func (p *Plan) Close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// Limit returns the largest body of a response that is taken, in bytes.
func (p *Plan) Limit() int { return p.limit }

// Varies reports whether calls depend on a message.
func (p *Plan) Varies() bool {
	varies := p.fixed == nil || len(p.headers) > 0
	if p.body != nil {
		_, static := p.body.Static()
		varies = varies || !static
	}
	return varies
}

// Pause returns how long to wait before attempt n is made again, the first being 0: the
// period of the configuration, doubled for each attempt, with jitter; and no less than after.
func (p *Plan) Pause(n int, after time.Duration) time.Duration {
	wait := p.of.RetryPeriod << min(n, 20)
	if p.of.MaxRetryBackoff > 0 {
		wait = min(wait, p.of.MaxRetryBackoff)
	}
	if wait > 0 {
		wait = wait/2 + rand.N(wait/2+1)
	}
	return max(wait, after)
}

// A Call is a request that may be sent several times.
type Call struct {
	Header http.Header
	plan   *Plan
	url    *url.URL
	body   []byte
}

// Prepare makes the call for a message. body returns what is sent if the configuration has
// no body; nil: nothing.
func (p *Plan) Prepare(doc func() *mapping.Doc, body func() ([]byte, error)) (*Call, error) {
	c := &Call{Header: maps.Clone(p.base), plan: p, url: p.fixed}
	if c.url == nil {
		text, err := p.url.Text(doc)
		if err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
		if c.url, err = parse(text); err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
	}
	if p.body != nil {
		text, err := p.body.Text(doc)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		c.body = []byte(text)
	} else if body != nil {
		var err error
		if c.body, err = body(); err != nil {
			return nil, err
		}
	}
	for _, one := range p.headers {
		value, err := one.value.Text(doc)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", one.name, err)
		}
		if hasControl(value) {
			return nil, fmt.Errorf("header %s: the value has control characters", one.name)
		}
		if one.name != "Authorization" || c.Header[one.name] == nil {
			c.Header.Set(one.name, value)
		}
	}
	if len(c.body) > 0 && c.Header["Content-Type"] == nil {
		c.Header["Content-Type"] = binary
		if json.Valid(c.body) {
			c.Header["Content-Type"] = document
		}
	}
	return c, nil
}

var document, binary = []string{"application/json"}, []string{"application/octet-stream"}

// parse reads the address of a call. Its error does not show it: it may have secrets.
func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, errors.New("want an absolute address such as https://example.org/path")
	case u.User != nil:
		return nil, errors.New("must not have a user or password; write auth.basic")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
