// Package client calls the admin and the gateway API for commands, and turns
// what goes wrong into errors that say what to do.
package client

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
)

// A Client calls one server. Make one with NewAdmin or NewGateway.
type Client struct {
	base   string
	header string // that carries the credential
	value  string
	http   *http.Client
}

// Bounds of one call. What changes many objects at once takes an admin minutes.
const (
	within     = time.Minute
	withinMany = 10 * time.Minute
)

// boundOf is how long an answer may take.
func boundOf(path string) time.Duration {
	if path == "/api/config/apply" {
		return withinMany
	}
	return within
}

// maxSent bounds what is sent in one call, in bytes: more is cut off by an admin
// before it can say why.
const maxSent = 64 << 20

// maxAnswer bounds what is read of one answer, in bytes.
const maxAnswer = 256 << 20

// NewAdmin returns a client of the admin at a URL, for the user of an access
// key.
func NewAdmin(base, key string) (*Client, error) {
	return newClient(base, "Authorization", "Bearer "+key)
}

// NewGateway returns a client of the gateway API at a URL, for whoever knows its
// secret.
func NewGateway(base, secret string) (*Client, error) {
	return newClient(base, "X-Svc-Authorization", secret)
}

// NewControl returns a client of another gateway's control API, which finds its
// secret in a header.
func NewControl(base, header, secret string) (*Client, error) {
	return newClient(base, header, secret)
}

func newClient(base, header, value string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8081", base)
	}
	return &Client{
		base: strings.TrimSuffix(base, "/"), header: header, value: value,
		http: &http.Client{
			// The credential is for this server alone.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Base returns the URL that is called.
func (c *Client) Base() string { return c.base }

// An UnreachableError says that a server gave no answer.
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

// A RefusedError is an answer other than success.
type RefusedError struct {
	Status  int
	Message string
	Errors  []string // each problem of what was sent
}

// Error joins what the server said.
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

// Call makes one call and returns the answer's body. body is sent as JSON, unless
// it is nil. The error is an *UnreachableError, or a *RefusedError for any answer
// but success.
func (c *Client) Call(ctx context.Context, method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, boundOf(path))
	defer cancel()
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &UnreachableError{c.base, cause(err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &UnreachableError{c.base, err}
	case len(answer) > maxAnswer:
		return nil, &UnreachableError{c.base, errors.New("the answer is too large")}
	case resp.StatusCode != http.StatusOK:
		return nil, refused(resp.StatusCode, answer)
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding what is sent: %w", err)
		}
		if len(data) > maxSent {
			return nil, fmt.Errorf("what is to be sent has %d MiB, and an admin takes at most %d at once: do it in parts", len(data)>>20, maxSent>>20)
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", c.base, err)
	}
	req.Header.Set(c.header, c.value)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// cause leaves out the URL, which the message has already.
func cause(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// refused reads what either server says when something is wrong.
func refused(status int, answer []byte) *RefusedError {
	var said struct {
		Message string            `json:"message"` // and Message, as the admin writes it
		Errors  []json.RawMessage `json:"errors"`
	}
	e := &RefusedError{Status: status}
	if json.Unmarshal(answer, &said) != nil {
		return e
	}
	e.Message = said.Message
	for _, raw := range said.Errors {
		e.Errors = append(e.Errors, problem(raw))
	}
	return e
}

// problem reads one of the errors: a text, or a path with a message.
func problem(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var pair struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &pair) // what is neither is said by the message beside it
	if pair.Path == "" {
		return pair.Message
	}
	return pair.Path + ": " + pair.Message
}
