package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
)

// A Client calls one server. Make one with NewAdmin or NewGateway.
type Client struct {
	base   string
	header string // with the credential
	value  string
	org    string // that all calls are about; "": that of the user
	http   *http.Client

	keyFile string // that the credential was read from; "": elsewhere
}

// Timeouts of one call. Applying many objects takes an admin minutes.
const (
	callTimeout  = time.Minute
	applyTimeout = 10 * time.Minute
)

// timeoutFor returns the timeout of a call.
func timeoutFor(path string) time.Duration {
	if path == "/api/config/apply" {
		return applyTimeout
	}
	return callTimeout
}

// maxRequest is the largest request body, in bytes. An admin closes the connection on
// larger ones without an explanation.
const maxRequest = 64 << 20

// maxResponse is the largest response body, in bytes.
const maxResponse = 256 << 20

// NewAdmin returns a client of the admin at a URL, for the user of an access
// key.
func NewAdmin(base, key string) (*Client, error) {
	return newClient(base, "Authorization", "Bearer "+key)
}

// NewGateway returns a client of the gateway API at a URL, authenticated by its secret.
func NewGateway(base, secret string) (*Client, error) {
	return newClient(base, "X-Svc-Authorization", secret)
}

// NewControl returns a client of another gateway's control API, which expects its
// credential in a header. ca is a PEM file of the authorities that are trusted; "": the
// system's.
func NewControl(base, header, credential, ca string) (*Client, error) {
	c, err := newClient(base, header, credential)
	if err != nil {
		return nil, InFlag("--from", err)
	}
	return c, InFlag("--from-ca", c.callBy(certs.CallerOptions{CA: ca}))
}

func newClient(base, header, value string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8081", base)
	}
	return &Client{
		base: strings.TrimSuffix(base, "/"), header: header, value: value,
		http: &http.Client{
			// Redirects must not receive the credential.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Base returns the URL that is called.
func (c *Client) Base() string { return c.base }

// An UnreachableError is returned when a server does not respond.
type UnreachableError struct {
	URL   string
	Cause error
}

// Error names the server.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s cannot be reached: %v", e.URL, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// A RefusedError is a response other than success.
type RefusedError struct {
	Status  int
	Message string
	Errors  []string // each problem of the request
}

// Error returns the message of the server with all problems.
func (e *RefusedError) Error() string {
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("the server answers %d %s", e.Status, http.StatusText(e.Status))
	}
	for _, one := range e.Errors {
		if !strings.Contains(text, one) {
			text += "\n  " + one
		}
	}
	return text
}

// Call makes one call and returns the response body. body is sent as JSON, unless it is
// nil. The error is an *UnreachableError, or a *RefusedError for any status but 200 and 201.
func (c *Client) Call(ctx context.Context, method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeoutFor(path))
	defer cancel()
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &UnreachableError{c.base, urlCause(err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, &UnreachableError{c.base, err}
	case len(answer) > maxResponse:
		return nil, &UnreachableError{c.base, errors.New("the answer is too large")}
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		refused := refusedError(resp.StatusCode, answer)
		if refused.Status == http.StatusUnauthorized && c.keyFile != "" {
			refused.Errors = append(refused.Errors, c.keyFile+": no user of "+c.base+" has this key: it was reset, its user was deleted, or it belongs to another server; use another one with sluice login or SLUICE_TOKEN")
		}
		return nil, refused
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		if len(data) > maxRequest {
			return nil, fmt.Errorf("the request has %d MiB, and an admin accepts at most %d at once: split it", len(data)>>20, maxRequest>>20)
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+c.inOrg(path), sent)
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", c.base, err)
	}
	req.Header.Set(c.header, c.value)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// inOrg returns a path with the query parameter that names the organisation.
func (c *Client) inOrg(path string) string {
	if c.org == "" {
		return path
	}
	behind := "?"
	if strings.Contains(path, "?") {
		behind = "&"
	}
	return path + behind + "org_id=" + url.QueryEscape(c.org)
}

// urlCause drops the URL from an error: the message has it already.
func urlCause(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// refusedError decodes an error response of either server.
func refusedError(status int, answer []byte) *RefusedError {
	var said struct {
		Message string            `json:"message"` // also matches Message, as the admin writes it
		Errors  []json.RawMessage `json:"errors"`
	}
	e := &RefusedError{Status: status}
	if json.Unmarshal(answer, &said) != nil {
		return e
	}
	e.Message = said.Message
	for _, raw := range said.Errors {
		e.Errors = append(e.Errors, problemText(raw))
	}
	return e
}

// problemText decodes one of the errors: a text, or a path with a message.
func problemText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var pair struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &pair) // anything else is described by the message
	if pair.Path == "" {
		return pair.Message
	}
	return pair.Path + ": " + pair.Message
}
