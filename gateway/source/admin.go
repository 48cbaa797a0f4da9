package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/pace"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/sleep"
)

// AdminOptions are the settings of an Admin.
type AdminOptions struct {
	URL       string            // of the admin
	Token     secret.Value      // bearer token for the admin
	Former    secret.Value      // former token, which may have encrypted the last good copy; empty: none
	Transport http.RoundTripper // nil: Go's own
	Gateway   string            // name of this gateway, for the admin's list
	Group     string
	Version   string
	Tags      []string // the gateway serves APIs with one of these, and those without any; nil: all APIs
	StateDir  string   // of the last good copy; "": none is kept
	CPU       float64  // share of one CPU that reading changes may take; 0: no limit
	Log       *slog.Logger

	// Refusal returns the record of a refused request of this gateway by its id, as JSON
	// has it; nil when there is none. With a nil Refusal the admin gets none.
	Refusal func(id string) any

	// Answer answers another question, which has a question mark, with what JSON is made
	// of; nil when there is nothing to say. With a nil Answer the admin gets none.
	Answer func(question string) any
}

// Admin gets bundles from the admin by long-polling. While the admin is away the last
// bundle stays in force, even if the gateway restarts.
type Admin struct {
	opts   AdminOptions
	client *http.Client
	copy   *lastGood              // nil: none kept
	tried  bool                   // loading the copy on disk was tried
	lacks  atomic.Pointer[string] // see Trouble; nil: nothing

	etag    string  // of the last response; "": the next one is a whole bundle
	held    *held   // the configuration after the last response; nil before the first
	arrived arrival // the last response, until it is applied
	again   bool    // a whole bundle is requested again, for the copy on disk
	asked   string  // the latest questions that the admin has asked

	mu     sync.Mutex
	status status
	origin atomic.Int32 // of the bundle in force
	fleet  atomic.Int64 // gateways that the admin knows
}

// An arrival is a response of the admin.
type arrival struct {
	data  []byte
	whole bool // a bundle, not a delta
}

// status is reported to the admin with each poll.
type status struct {
	revision string
	failed   int
	err      string
}

// The origins of the bundle in force.
const (
	FromNowhere int32 = iota
	FromAdmin
	FromDisk
)

// pollFor is how long the admin may hold a poll.
const pollFor = 30 * time.Second

// answerWithin is how long the admin may take to respond when it does not hold the poll.
// A gateway that starts then uses its copy on disk.
const answerWithin = 5 * time.Second

// transferWithin bounds the transfer of one bundle.
const transferWithin = time.Minute

// maxBundle bounds a bundle, in bytes.
const maxBundle = 1 << 29

// NewAdmin returns the source. It fails if the URL is invalid, or the copy on disk cannot
// be encrypted.
func NewAdmin(opts AdminOptions) (*Admin, error) {
	u, err := url.Parse(opts.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("gateway.admin_url: %q is not a URL such as http://admin:8081", opts.URL)
	}
	if opts.Transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.DialContext = (&net.Dialer{Timeout: answerWithin}).DialContext
		opts.Transport = own
	}
	a := &Admin{opts: opts, client: &http.Client{Transport: opts.Transport}}
	if opts.StateDir != "" && !opts.Token.Empty() {
		if a.copy, err = newLastGood(opts.StateDir, opts.Token, opts.Former); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Origin returns where the bundle in force came from.
func (a *Admin) Origin() int32 { return a.origin.Load() }

// Away reports whether the last poll brought neither a bundle nor the news that there is
// none.
func (a *Admin) Away() bool { return a.lacks.Load() != nil }

// Trouble returns what was wrong with the last poll, "" if nothing was. The text is
// public: it has no addresses.
func (a *Admin) Trouble() string {
	if text := a.lacks.Load(); text != nil {
		return *text
	}
	return ""
}

// Gateways returns how many gateways the admin knows, at least 1.
func (a *Admin) Gateways() int { return int(max(1, a.fleet.Load())) }

// Next polls until the admin has a bundle of another revision, or requests that the same
// one is loaded again, for instance because it failed on this machine. Before the first
// bundle it falls back to the copy on disk as soon as the admin does not respond.
func (a *Admin) Next(ctx context.Context, have string) (*definition.Bundle, error) {
	for wait := time.Duration(0); ; {
		reloaded := a.etag != "" // then a response is a change, or a reload was requested
		b, err := a.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			a.fail(err)
			if have == "" && !a.tried {
				if b := a.fromDisk(ctx); b != nil {
					return b, nil
				}
			}
			wait = min(wait*2+100*time.Millisecond, 5*time.Second)
			if err := sleep.For(ctx, wait/2+rand.N(wait/2)); err != nil {
				return nil, err
			}
			continue
		}
		a.back()
		a.origin.Store(FromAdmin)
		wait = 0
		if b != nil && (b.Revision != have || reloaded || a.again) {
			a.again = false
			return b, nil
		}
	}
}

// Goodbye tells the admin that the gateway serves no longer, once Next is not called any
// more. It does nothing while the admin is away.
func (a *Admin) Goodbye(ctx context.Context) error {
	if a.Away() || a.opts.Gateway == "" {
		return nil
	}
	status, err := a.call(ctx, http.MethodDelete, "/api/gateways/"+url.PathEscape(a.opts.Gateway), nil)
	if status == http.StatusNotFound {
		return nil
	}
	return err
}

// fail notes why a poll failed, and logs it when the reason is another one.
func (a *Admin) fail(err error) {
	text := "the admin does not answer"
	if answer, ok := errors.AsType[*answerError](err); ok {
		text = answer.trouble()
	}
	if former := a.lacks.Swap(&text); former == nil || *former != text {
		a.opts.Log.Warn(text+"; the configuration in force stays", "admin", a.opts.URL, "err", err)
	}
}

func (a *Admin) back() {
	if a.lacks.Swap(nil) != nil {
		a.opts.Log.Info("the admin answers again", "admin", a.opts.URL)
	}
}

// An answerError is an answer of the admin without a configuration.
type answerError struct {
	status int
	away   string // what the admin itself lacks
	said   string
}

// Error returns the answer.
func (e *answerError) Error() string {
	return fmt.Sprintf("admin answered %d %s: %s", e.status, http.StatusText(e.status), e.said)
}

// trouble returns what is wrong, without what the admin said.
func (e *answerError) trouble() string {
	switch {
	case e.away == definition.AwayDatabase:
		return "the admin answers, but its database is away"
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		return "the admin refuses this gateway's token"
	case e.status == http.StatusTooManyRequests:
		return "the admin refuses this address, after too many calls with a wrong token"
	}
	return fmt.Sprintf("the admin answers %d %s", e.status, http.StatusText(e.status))
}

// fromDisk returns the last good copy, once.
func (a *Admin) fromDisk(ctx context.Context) *definition.Bundle {
	a.tried = true
	if a.copy == nil {
		return nil
	}
	h, err := a.copy.load(ctx)
	switch {
	case err != nil:
		a.opts.Log.Error("the last good configuration cannot be used", "err", err)
		return nil
	case h == nil:
		return nil
	}
	a.held = h
	a.origin.Store(FromDisk)
	a.opts.Log.Warn("serving the last good configuration from disk", "revision", h.revision)
	return a.served(h)
}

// poll sends one request. It returns nil if nothing has changed.
func (a *Admin) poll(ctx context.Context) (*definition.Bundle, error) {
	patience := answerWithin
	if a.etag != "" {
		patience += pollFor
	}
	lifetime := ctx
	ctx, cancel := context.WithTimeout(ctx, patience+transferWithin)
	defer cancel()
	silent := time.AfterFunc(patience, cancel)
	address := strings.TrimSuffix(a.opts.URL, "/") + "/api/gateway/bundle?wait=" + pollFor.String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.opts.Token.Reveal())
	if a.etag != "" {
		req.Header.Set("If-None-Match", a.etag)
		req.Header.Set("A-IM", definition.DeltaEncoding)
	}
	a.report(req.Header)
	if a.asked != "" {
		req.Header.Set("X-Sluice-Asked", a.asked)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	silent.Stop()
	a.answer(lifetime, resp.Header.Get("X-Sluice-Asked"))
	if n, err := strconv.ParseInt(resp.Header.Get("X-Sluice-Gateways"), 10, 32); err == nil {
		a.fleet.Store(n)
	}
	switch resp.StatusCode {
	case http.StatusNotModified:
		return nil, nil
	case http.StatusOK, http.StatusIMUsed:
		var pacer *pace.Pacer // nil at first: nothing is served yet
		if a.held != nil {
			pacer = pace.New(a.opts.CPU)
		}
		data, err := readPaced(ctx, pacer, io.LimitReader(resp.Body, maxBundle))
		if err != nil {
			return nil, fmt.Errorf("reading a bundle: %w", err)
		}
		return a.take(lifetime, pacer, resp, data)
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // for the error
	return nil, &answerError{resp.StatusCode, resp.Header.Get(definition.AwayHeader), string(said)}
}

// answer sends what the admin asks for: the records of refused requests, and answers to
// other questions. Questions are separated by commas. Each begins with its name and a dot;
// then comes the id of a request, or what Answer understands.
func (a *Admin) answer(ctx context.Context, questions string) {
	if questions == "" {
		return
	}
	for one := range strings.SplitSeq(questions, ",") {
		name, asked, _ := strings.Cut(one, ".")
		if a.opts.Answer != nil && strings.Contains(asked, "?") { // no request id
			a.asked = lastOf(a.asked+","+name, maxAsked)
			if answer := a.opts.Answer(asked); answer != nil {
				go a.send(ctx, "/api/gateway/answers", map[string]any{"question": name, "answer": answer})
			}
			continue
		}
		a.asked = lastOf(a.asked+","+one, maxAsked)
		if a.opts.Refusal == nil {
			continue
		}
		if found := a.opts.Refusal(asked); found != nil {
			go a.send(ctx, "/api/gateway/refusals", map[string]any{"id": asked, "refusal": found})
		}
	}
}

// maxAsked is how many questions are remembered, so that they are not asked again.
const maxAsked = 32

// lastOf returns the last elements of a list that is separated by commas.
func lastOf(list string, most int) string {
	all := strings.Split(list, ",")
	return strings.Trim(strings.Join(all[max(0, len(all)-most):], ","), ",")
}

func (a *Admin) send(ctx context.Context, path string, answer map[string]any) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	body, err := json.Marshal(answer)
	if err == nil {
		_, err = a.call(ctx, http.MethodPost, path, body)
	}
	if err != nil {
		a.opts.Log.Warn("the admin did not get an answer to its question", "path", path, "err", err)
	}
}

// call makes a call of the admin that is no poll, and returns the status of the response,
// with an error unless it is 200.
func (a *Admin) call(ctx context.Context, method, path string, body []byte) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.opts.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+a.opts.Token.Reveal())
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // for the error
	return resp.StatusCode, fmt.Errorf("admin answered %s: %s", resp.Status, said)
}

// take parses a response: a bundle, or a delta to the last one (RFC 3229). After an error
// the next poll requests a whole bundle.
func (a *Admin) take(ctx context.Context, pacer *pace.Pacer, resp *http.Response, data []byte) (*definition.Bundle, error) {
	base := a.etag
	a.etag = ""
	whole := resp.StatusCode == http.StatusOK
	var next *held
	var err error
	switch {
	case whole:
		next, err = a.held.replacedBy(ctx, pacer, data)
	case base == "" || resp.Header.Get("Delta-Base") != base:
		err = fmt.Errorf("the admin sent a delta to %.80q, not to %q", resp.Header.Get("Delta-Base"), base)
	default:
		next, err = a.held.with(ctx, pacer, data)
	}
	if err != nil {
		return nil, err
	}
	a.held, a.etag, a.arrived = next, resp.Header.Get("ETag"), arrival{data, whole}
	return a.served(next), nil
}

// served returns the bundle of a configuration. That on disk may be from before the tags
// of the gateway were changed, and admins of earlier releases send every API.
func (a *Admin) served(h *held) *definition.Bundle {
	b := h.bundle()
	b.KeepServed(a.opts.Tags)
	return b
}

// readPaced reads to the end, with pauses, since decompression takes long.
func readPaced(ctx context.Context, p *pace.Pacer, r io.Reader) ([]byte, error) {
	var all bytes.Buffer
	p.Begin()
	for {
		n, err := io.CopyN(&all, r, 64<<10)
		if err == io.EOF {
			return all.Bytes(), nil
		}
		if err != nil || n == 0 {
			return nil, err
		}
		if err := p.Step(ctx); err != nil {
			return nil, err
		}
	}
}

// report adds the status of the last bundle to a request.
func (a *Admin) report(h http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h.Set("X-Sluice-Gateway", a.opts.Gateway)
	h.Set("X-Sluice-Group", a.opts.Group)
	h.Set("X-Sluice-Version", a.opts.Version)
	if a.opts.Tags != nil {
		h.Set("X-Sluice-Tags", definition.JoinTags(a.opts.Tags))
	}
	h.Set("X-Sluice-Revision", a.status.revision)
	if a.status.failed > 0 {
		h.Set("X-Sluice-Failed", strconv.Itoa(a.status.failed))
		h.Set("X-Sluice-Error", a.status.err)
	}
}

// Applied stores the status, and the bundle if all of it is in force.
func (a *Admin) Applied(b *definition.Bundle, failed map[string]error) {
	a.Report(b.Revision, failed)
	arrived := a.arrived
	a.arrived = arrival{}
	if a.copy == nil || a.origin.Load() == FromDisk {
		return
	}
	if err := a.keep(arrived, len(failed) == 0); err != nil {
		a.opts.Log.Error("keeping the last good configuration", "err", err)
	}
}

// Report stores the status, which the next poll tells the admin. It may be called at any
// time.
func (a *Admin) Report(revision string, failed map[string]error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status{revision: revision, failed: len(failed)}
	for id, err := range failed {
		a.status.err = headerText(id + ": " + err.Error())
		break
	}
}

// keep updates the copy on disk. Deltas cannot be added after a bundle that is not served
// as written; then, and when the file has grown too large, a whole bundle is requested
// again.
func (a *Admin) keep(arrived arrival, good bool) error {
	switch {
	case !good:
		a.copy.last = nil
		return nil
	case arrived.whole:
		return a.copy.replace(arrived.data)
	case a.copy.last == nil || a.copy.long():
		a.etag, a.again = "", true
		return nil
	}
	return a.copy.add(arrived.data)
}

// headerText makes text fit for a header value.
func headerText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), 500)]
}
