package acme

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
	"github.com/sluicegate/sluice/internal/secret"
)

// ErrNotFound means that a vault has no entry with a name.
var ErrNotFound = errors.New("there is no such entry")

// A Vault stores the entries that gateways share: accounts, certificates and answers to
// challenges. A lease lets one attempt at a time order a certificate.
type Vault interface {
	// Get returns an entry, or ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)

	// Put stores an entry for some time; 0: without end.
	Put(ctx context.Context, name string, value []byte, expires time.Duration) error

	// Delete removes an entry, if there is one.
	Delete(ctx context.Context, name string) error

	// Take asks for a lease, and returns how many attempts failed before.
	Take(ctx context.Context, name, holder string, lasts time.Duration) (failures int, granted bool, err error)

	// Settle ends the attempt of a holder.
	Settle(ctx context.Context, name, holder string, end Outcome) error
}

// An Outcome is how an attempt to obtain a certificate ended.
type Outcome struct {
	Failures int           // attempts that failed one after another; 0: this one did not
	Error    string        // why it failed
	Pause    time.Duration // until the next attempt
}

// answerWithin is how long the admin may take to respond.
const answerWithin = 5 * time.Second

// maxAnswer bounds a response of the admin, in bytes: an entry in base64.
const maxAnswer = 2 * certs.MaxACMEValue

// Remote is the vault of an admin.
type Remote struct {
	address string
	token   secret.Value
	client  *http.Client
}

// NewRemote returns the vault of the admin at a URL. A nil transport is Go's own.
func NewRemote(admin string, token secret.Value, transport http.RoundTripper) *Remote {
	return &Remote{address: strings.TrimSuffix(admin, "/") + "/api/gateway/acme/", token: token, client: &http.Client{
		Transport: transport, Timeout: answerWithin,
		// No redirects: private keys are sent to the admin only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get implements Vault.
func (r *Remote) Get(ctx context.Context, name string) ([]byte, error) {
	var entry certs.ACMEEntry
	err := r.call(ctx, http.MethodGet, url.PathEscape(name), nil, &entry)
	return entry.Value, err
}

// Put implements Vault.
func (r *Remote) Put(ctx context.Context, name string, value []byte, expires time.Duration) error {
	return r.call(ctx, http.MethodPut, url.PathEscape(name), certs.ACMEEntry{Value: value, ExpiresIn: int64(expires / time.Second)}, nil)
}

// Delete implements Vault.
func (r *Remote) Delete(ctx context.Context, name string) error {
	return r.call(ctx, http.MethodDelete, url.PathEscape(name), nil, nil)
}

// Take implements Vault.
func (r *Remote) Take(ctx context.Context, name, holder string, lasts time.Duration) (failures int, granted bool, err error) {
	var answer certs.ACMELeased
	err = r.call(ctx, http.MethodPost, url.PathEscape(name)+"/lease", certs.ACMELease{Holder: holder, Seconds: int64(lasts / time.Second)}, &answer)
	return int(answer.Failures), answer.Granted, err
}

// Settle implements Vault.
func (r *Remote) Settle(ctx context.Context, name, holder string, end Outcome) error {
	return r.call(ctx, http.MethodPut, url.PathEscape(name)+"/lease", certs.ACMELease{
		Holder: holder, Seconds: int64(end.Pause / time.Second), Failures: int32(end.Failures), Error: end.Error,
	}, nil)
}

// call makes a call of the admin. A nil body is none, and a nil into drops the response.
func (r *Remote) call(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.address+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.token.Reveal())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound:
		return ErrNotFound
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("admin answered %s: %.300s", resp.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
