package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
)

// AdminOptions say where the admin is that owns the configuration.
type AdminOptions struct {
	URL       string            // such as http://admin:8081
	Token     secret.Value      // of the gateways, shown to the admin
	Transport http.RoundTripper // nil: Go's own
	Live      Live              // tells when a change has arrived here
	ClearKeys bool              // keys are stored in clear, as keys.hash says on both sides
}

// Admin passes calls on to the admin that owns definitions and keys, and answers
// as if they were here. It implements Definitions, Keys, Reloader and
// GroupReloader.
type Admin struct {
	opts   AdminOptions
	base   string
	client *http.Client
}

// adminWithin bounds one call to the admin, which gives itself ten seconds.
const adminWithin = 12 * time.Second

// maxReply bounds what is read of one answer, in bytes.
const maxReply = 256 << 20

// NewAdmin returns the backend. It fails when the URL is none.
func NewAdmin(opts AdminOptions) (*Admin, error) {
	u, err := url.Parse(opts.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("gateway.admin_url: %q is not a URL such as http://admin:8081", opts.URL)
	}
	if opts.Live == nil {
		return nil, errors.New("gateway API: Live is required")
	}
	return &Admin{
		opts: opts, base: strings.TrimSuffix(opts.URL, "/"),
		client: &http.Client{
			Transport: opts.Transport, Timeout: adminWithin,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// reply is the envelope of the admin's answers.
type reply struct {
	Status  string
	Message string
	ID      string
	Errors  []string
}

// do makes one call. path is joined of parts that are escaped already. What the
// admin answers goes to into, unless that is nil; an answer other than 200 is
// returned as *Error, with the admin's status.
func (a *Admin) do(ctx context.Context, method, path string, body, into any) error {
	req, err := a.request(ctx, method, path, body)
	if err != nil {
		return broken("The call to the admin could not be made", err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return away(method, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err == nil && len(data) > maxReply {
		err = fmt.Errorf("answer is larger than %d bytes", maxReply)
	}
	if err != nil {
		return away(method, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refused(resp, data)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return broken("The admin's answer cannot be read", err)
	}
	return nil
}

func (a *Admin) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var sent io.Reader
	if body != nil {
		data, err := encode(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, sent)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.opts.Token.Reveal())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// away says that the admin did not answer, and what is not known for that.
func away(method string, err error) *Error {
	if method == http.MethodGet {
		return unavailable("The admin does not answer; try again", err)
	}
	return unavailable("The admin does not answer; the change may not have been made: try again", err)
}

// refused turns an answer of the admin into one of ours.
func refused(resp *http.Response, data []byte) *Error {
	var said reply
	if json.Unmarshal(data, &said) != nil || said.Message == "" {
		// Something else answers under the address, or stands in between.
		return broken("gateway.admin_url does not lead to an admin: "+resp.Status, errors.New("answer without a message"))
	}
	e := &Error{Status: resp.StatusCode, Message: said.Message}
	for _, problem := range said.Errors {
		e.Problems = append(e.Problems, parseProblem(problem))
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		// The caller's own credentials are fine.
		return broken("The admin refuses this gateway's token: check gateway.token on both sides", errors.New(said.Message))
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		return unavailable("The admin cannot do it now: "+said.Message, errors.New(resp.Status))
	case resp.StatusCode >= 500 || resp.StatusCode < 400:
		return broken("The admin cannot do it: "+said.Message, errors.New(resp.Status))
	}
	return e
}

// parseProblem takes "path: message" apart. A path has no space.
func parseProblem(text string) definition.Problem {
	path, message, found := strings.Cut(text, ": ")
	if !found || strings.ContainsAny(path, " ,") {
		return definition.Problem{Message: text}
	}
	return definition.Problem{Path: path, Message: message}
}

// statusOf is the status that the admin answered with, 0 for anything else.
func statusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// said gives an answer of the admin the words of this API.
func said(err error, name string) error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return err
	case e.Status == http.StatusNotFound:
		return ErrNotFound
	case e.Status == http.StatusBadRequest && len(e.Problems) > 0:
		return invalid(name, e.Problems)
	}
	return err
}

// Reload waits until this gateway serves what the admin has now.
func (a *Admin) Reload(ctx context.Context) error {
	var state struct {
		Revision int64 `json:"revision"`
	}
	if err := a.do(ctx, http.MethodGet, "/api/config", nil, &state); err != nil {
		return err
	}
	ticker := time.NewTicker(arrivedEvery)
	defer ticker.Stop()
	patience := time.NewTimer(arriveWithin)
	defer patience.Stop()
	for !reached(a.opts.Live.Revision(), state.Revision) {
		select {
		case <-ticker.C:
		case <-patience.C:
			return broken(fmt.Sprintf("This gateway serves revision %q; the admin's revision %d has not been applied", a.opts.Live.Revision(), state.Revision), nil)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return failures(a.opts.Live)
}

// How a change of the admin's is waited for: it takes a long-poll and a swap.
const (
	arrivedEvery = 20 * time.Millisecond
	arriveWithin = 20 * time.Second
)

// reached tells whether a revision is another one of the admin's, or later.
func reached(have string, want int64) bool {
	n, err := strconv.ParseInt(have, 10, 64)
	return err == nil && n >= want
}

// failures joins what is not served as written.
func failures(live Live) error {
	failed := live.Failed()
	errs := make([]error, 0, len(failed))
	for _, id := range sorted(failed) {
		errs = append(errs, fmt.Errorf("%s: %w", id, failed[id]))
	}
	return errors.Join(errs...)
}

// ReloadGroup has the admin tell all its gateways.
func (a *Admin) ReloadGroup(ctx context.Context) error {
	return a.do(ctx, http.MethodPost, "/api/gateway/reload", nil, nil)
}

// ForgetAnswers has the admin tell all its gateways with the next configuration.
func (a *Admin) ForgetAnswers(ctx context.Context, api string) error {
	path, err := at(apisPath, api)
	if err != nil {
		return err
	}
	return a.do(ctx, http.MethodDelete, path+"/cache", nil, nil)
}

// Watch has nothing to do but wait for ctx to end: the gateway follows the admin
// anyway.
func (a *Admin) Watch(ctx context.Context, _ func(), _ func(string)) { <-ctx.Done() }
