package process

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

const (
	statusMeta      = "http_status_code"
	longestPause    = time.Minute // between two attempts, whatever the server asks for
	maxHeaderBytes  = 64 << 10    // of a response
	idleConnections = 16          // to a host
)

// httpWork is the http processor: the body of the response becomes the message.
type httpWork struct {
	of      *streams.HTTPRequest
	url     *mapping.Template
	body    *mapping.Template // nil: the message
	headers []header
	client  *http.Client
	ctx     context.Context
	limit   int
	next    node
}

func (p *compiler) http(path string, of *streams.HTTPRequest, next node) work {
	site := p.chain.site
	transport := &http.Transport{
		DialContext:            site.Dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: of.SkipVerify}, //nolint:gosec // if the configuration says so
		TLSHandshakeTimeout:    of.Timeout,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
	}
	p.chain.close = append(p.chain.close, transport.CloseIdleConnections)
	w := &httpWork{
		of: of, url: p.template(path+".url", of.URL), headers: p.headers(path+".headers", of.Headers),
		client: &http.Client{
			Transport:     transport,
			Timeout:       of.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		ctx: p.chain.ctx, limit: of.MaxResponseBytes, next: next,
	}
	if of.Body != "" {
		w.body = p.template(path+".body", of.Body)
	}
	if w.limit <= 0 || w.limit > site.MaxMessageBytes {
		w.limit = site.MaxMessageBytes
	}
	if site.Dial == nil {
		p.problem(path, errors.New("nothing can be called here"))
	}
	return w
}

// call is a request that may be sent several times.
type call struct {
	url    *url.URL
	header http.Header
	body   []byte
}

func (w *httpWork) run(it *item) (node, error) {
	c, err := w.prepare(it)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		doc, failure := w.send(c, it)
		if failure == nil {
			it.doc = doc
			return w.next, nil
		}
		if failure.Class == stream.Refused || attempt >= w.of.Retries || !w.pause(attempt, failure.After) {
			return nil, failure
		}
	}
}

func (w *httpWork) prepare(it *item) (*call, error) {
	c := &call{header: make(http.Header, len(w.headers)+2)}
	text, err := w.url.Text(it.document)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if c.url, err = url.Parse(text); err != nil || c.url.Host == "" || (c.url.Scheme != "http" && c.url.Scheme != "https") {
		return nil, errors.New("url: want an absolute address such as https://example.org/path")
	}
	if w.body != nil {
		text, err := w.body.Text(it.document)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		c.body = []byte(text)
	} else if c.body, err = it.document().Bytes(); err != nil {
		return nil, err
	}
	c.header.Set("User-Agent", "sluice")
	if len(c.body) > 0 {
		c.header.Set("Content-Type", "application/json")
	}
	for _, one := range w.headers {
		value, err := one.value.Text(it.document)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", one.name, err)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("header %s: the value has control characters", one.name)
		}
		c.header.Set(one.name, value)
	}
	switch {
	case w.of.Bearer != "":
		c.header.Set("Authorization", "Bearer "+string(w.of.Bearer))
	case w.of.BasicUser != "":
		r := http.Request{Header: c.header}
		r.SetBasicAuth(w.of.BasicUser, string(w.of.BasicPassword))
	}
	return c, nil
}

// send sends a call once. It returns what the message becomes, or a failure of class
// Refused if another attempt would not help.
func (w *httpWork) send(c *call, it *item) (*mapping.Doc, *stream.Failure) {
	req := (&http.Request{
		Method: w.of.Verb, URL: c.url, Header: c.header.Clone(), Host: c.url.Host,
		Body: io.NopCloser(bytes.NewReader(c.body)), ContentLength: int64(len(c.body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil },
	}).WithContext(w.ctx)
	if host := c.header.Get("Host"); host != "" {
		req.Host = host
	}
	if len(c.body) == 0 {
		req.Body, req.GetBody = http.NoBody, nil
	}
	answer, err := w.client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the address, which may have secrets
		}
		return nil, stream.Failf(stream.Transient, "%s %s: %w", w.of.Verb, c.url.Host, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(w.limit)+1))
	if failure := w.judge(c, answer); failure != nil {
		return nil, failure
	}
	if err != nil {
		return nil, stream.Failf(stream.Transient, "%s %s: the response broke off: %w", w.of.Verb, c.url.Host, err)
	}
	if len(body) > w.limit {
		return nil, stream.Failf(stream.Refused, "%s %s: the response has more than %d bytes", w.of.Verb, c.url.Host, w.limit)
	}
	doc := it.document().Copy()
	doc.SetBody(body)
	doc.SetMeta(statusMeta, strconv.Itoa(answer.StatusCode))
	for name, values := range answer.Header {
		if name != "Set-Cookie" { // a credential
			doc.SetMeta(strings.ToLower(name), strings.ToValidUTF8(values[0], "?"))
		}
	}
	return doc, nil
}

// judge returns what is wrong with an answer, nil for a success.
func (w *httpWork) judge(c *call, answer *http.Response) *stream.Failure {
	status := answer.StatusCode
	class := stream.Refused
	switch {
	case slices.Contains(w.of.DropOn, status):
	case slices.Contains(w.of.SuccessfulOn, status), status/100 == 2 && !slices.Contains(w.of.BackoffOn, status):
		return nil
	case slices.Contains(w.of.BackoffOn, status), status >= 500, status == http.StatusRequestTimeout,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		class = stream.Transient
	}
	failure := stream.Failf(class, "%s %s: status %d", w.of.Verb, c.url.Host, status)
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		failure.After = time.Duration(min(seconds, int(longestPause/time.Second))) * time.Second
	}
	return failure
}

// pause waits before the next attempt. It reports whether there may be one.
func (w *httpWork) pause(attempt int, after time.Duration) bool {
	longest := longestPause
	if w.of.MaxRetryBackoff > 0 {
		longest = min(longest, w.of.MaxRetryBackoff)
	}
	wait := min(w.of.RetryPeriod<<min(attempt, 20), longest)
	if wait > 0 {
		wait = wait/2 + rand.N(wait/2+1)
	}
	timer := time.NewTimer(max(wait, after))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.ctx.Done():
		return false
	}
}
