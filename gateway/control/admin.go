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

// AdminOptions are the settings of an Admin.
type AdminOptions struct {
	URL       string            // such as http://admin:8081
	Token     secret.Value      // bearer token of gateways
	Transport http.RoundTripper // nil: Go's own
	Live      Live              // reports when a change has arrived here
	ClearKeys bool              // keys are stored in clear (keys.hash: none), here and in the admin
}

// Admin forwards calls to the admin that owns definitions and keys, and answers as if
// they were stored here. It implements Definitions, Keys, Reloader and GroupReloader.
type Admin struct {
	opts   AdminOptions
	base   string
	client *http.Client
}

// adminWithin bounds one call to the admin, which limits itself to ten seconds.
const adminWithin = 12 * time.Second

// maxReply bounds a response of the admin, in bytes.
const maxReply = 256 << 20

// NewAdmin returns the backend. It fails if the URL is invalid.
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

// reply is the envelope of the admin's responses.
type reply struct {
	Status  string
	Message string
	ID      string
	Errors  []string
}

// orgs returns the organisation itself, or with "" all that there are.
func (a *Admin) orgs(ctx context.Context, one string) ([]string, error) {
	if one != "" {
		return []string{one}, nil
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		}
	}
	if err := a.do(ctx, http.MethodGet, "/api/orgs?p=-1", nil, &list); err != nil {
		return nil, err
	}
	var all []string
	for _, org := range list.Data {
		all = append(all, org.ID)
	}
	return all, nil
}

// ofOrg returns the query parameter that makes a call one about an organisation, behind
// "?" or "&"; "" for none.
func ofOrg(behind, org string) string {
	if org == "" {
		return ""
	}
	return behind + "org_id=" + url.QueryEscape(org)
}

// do makes one call. path consists of escaped segments. The response is decoded into
// into unless that is nil; a status other than 200 and 201 is returned as *Error with the
// admin's status.
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
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
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

// away returns the error for an admin that did not answer. A change may have been made
// nevertheless.
func away(method string, err error) *Error {
	if method == http.MethodGet {
		return unavailable("The admin does not answer; try again", err)
	}
	return unavailable("The admin does not answer; the change may not have been made: try again", err)
}

// refused converts an error response of the admin.
func refused(resp *http.Response, data []byte) *Error {
	var said reply
	if json.Unmarshal(data, &said) != nil || said.Message == "" {
		// Another server answers at the address, or a proxy in between.
		return broken("gateway.admin_url does not lead to an admin: "+resp.Status, errors.New("answer without a message"))
	}
	e := &Error{Status: resp.StatusCode, Message: said.Message}
	for _, problem := range said.Errors {
		e.Problems = append(e.Problems, parseProblem(problem))
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		// The gateway's credentials were refused, not the caller's.
		return broken("The admin refuses this gateway's token: check gateway.token on both sides", errors.New(said.Message))
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		return unavailable("The admin cannot do it now: "+said.Message, errors.New(resp.Status))
	case resp.StatusCode >= 500 || resp.StatusCode < 400:
		return broken("The admin cannot do it: "+said.Message, errors.New(resp.Status))
	}
	return e
}

// parseProblem splits "path: message". A path contains no space.
func parseProblem(text string) definition.Problem {
	path, message, found := strings.Cut(text, ": ")
	if !found || strings.ContainsAny(path, " ,") {
		return definition.Problem{Message: text}
	}
	return definition.Problem{Path: path, Message: message}
}

// statusOf returns the status that the admin answered with, or 0 for any other error.
func statusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return 0
}

// said replaces a "not found" of the admin by the wording of this API.
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

// How long a change is waited for: it takes a long-poll and a swap.
const (
	arrivedEvery = 20 * time.Millisecond
	arriveWithin = 20 * time.Second
)

// reached reports whether a revision is later than another, or not comparable to it.
func reached(have string, want int64) bool {
	n, err := strconv.ParseInt(have, 10, 64)
	return err == nil && n >= want
}

// failures joins the errors of definitions that are not served as written.
func failures(live Live) error {
	failed := live.Failed()
	errs := make([]error, 0, len(failed))
	for _, id := range sorted(failed) {
		errs = append(errs, fmt.Errorf("%s: %w", id, failed[id]))
	}
	return errors.Join(errs...)
}

// ReloadGroup makes the admin notify all its gateways.
func (a *Admin) ReloadGroup(ctx context.Context) error {
	return a.do(ctx, http.MethodPost, "/api/gateway/reload", nil, nil)
}

// ForgetAnswers makes the admin notify all its gateways with the next configuration.
func (a *Admin) ForgetAnswers(ctx context.Context, api string) error {
	path, err := at(apisPath, api)
	if err != nil {
		return err
	}
	return a.do(ctx, http.MethodDelete, path+"/cache", nil, nil)
}

// Watch waits for ctx to end: the gateway follows the admin anyway.
func (a *Admin) Watch(ctx context.Context, _ func(), _ func(string)) { <-ctx.Done() }
