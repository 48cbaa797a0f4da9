package certs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/secret"
)

// RemoteOptions are the settings of a Remote.
type RemoteOptions struct {
	URL       string            // of the admin
	Token     secret.Value      // bearer token for the admin; encrypts the copy on disk
	Former    secret.Value      // former token, which may have encrypted the copy; empty: none
	Transport http.RoundTripper // nil: over the network
	StateDir  string            // of the copy; "": none is kept
	Store     *Store
	Log       *slog.Logger
}

// Remote gets certificates from the admin before each bundle that may refer to them, and
// keeps an encrypted copy for a start without the admin.
type Remote struct {
	opts    RemoteOptions
	client  *http.Client
	address string
	key     secret.Key
	path    string // of the copy; "": none is kept

	mu     sync.Mutex
	etag   string
	loaded bool // the store was filled, by the admin or from disk
	failed bool // the last request failed, which is logged once
}

// How long the admin may take, and the pause before the next attempt.
const (
	answerWithin = 5 * time.Second
	askAgain     = 5 * time.Second
	maxDelivery  = 256 << 20 // bytes
)

// NewRemote returns a Remote for the admin at a URL.
func NewRemote(o RemoteOptions) (*Remote, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("gateway.admin_url: %q is not a URL such as http://admin:8081", o.URL)
	}
	r := &Remote{opts: o, client: &http.Client{
		Transport: o.Transport, Timeout: answerWithin,
		// No redirects: private keys are sent over TLS only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	r.address = strings.TrimSuffix(o.URL, "/") + "/api/gateway/certs"
	if u.Scheme == "https" || o.Transport != nil || isLoopback(u.Hostname()) {
		r.address += "?keys=true"
	}
	if o.StateDir != "" && !o.Token.Empty() {
		if r.key, err = secret.DeriveKeyAfter(o.Token, o.Former, "certificates"); err != nil {
			return nil, err
		}
		r.path = filepath.Join(o.StateDir, "certs.sealed")
	}
	return r, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Before returns a source that updates the certificates before each bundle.
func (r *Remote) Before(src source.Source) source.Source { return &ahead{src, r} }

type ahead struct {
	source.Source
	certs *Remote
}

// Next implements source.Source.
func (a *ahead) Next(ctx context.Context, have string) (*definition.Bundle, error) {
	b, err := a.Source.Next(ctx, have)
	if err == nil {
		a.certs.refresh(ctx)
	}
	return b, err
}

// Run repeats failed requests until ctx ends.
func (r *Remote) Run(ctx context.Context) {
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		r.mu.Lock()
		failed := r.failed
		r.mu.Unlock()
		if failed {
			r.refresh(ctx)
		}
	}
}

// refresh updates the store. While the admin is away it keeps what it has, at first the
// copy on disk.
func (r *Remote) refresh(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		if r.failed {
			r.opts.Log.Info("certificates come from the admin again", "admin", r.opts.URL)
		}
		r.failed = false
		return
	case !r.failed:
		r.opts.Log.Warn("certificates were not taken from the admin; those there are stay in use", "admin", r.opts.URL, "err", err)
	}
	r.failed = true
	if !r.loaded && r.path != "" {
		if err := r.fromDisk(); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.opts.Log.Error("the copy of the certificates cannot be used", "err", err)
		}
	}
}

// ask requests the certificates, unless they are those of the last response.
func (r *Remote) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.opts.Token.Reveal())
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return nil
	case http.StatusOK:
	case http.StatusNotFound:
		return nil // an older admin without certificates
	default:
		return fmt.Errorf("admin answered %s", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDelivery+1))
	if err != nil {
		return err
	}
	if len(body) > maxDelivery {
		return fmt.Errorf("the admin's certificates are longer than %d bytes", maxDelivery)
	}
	if err := r.take(body); err != nil {
		return err
	}
	if err := r.keep(body); err != nil {
		r.etag = "" // repeats the request
		return err
	}
	r.etag = resp.Header.Get("ETag")
	return nil
}

// take fills the store from a response.
func (r *Remote) take(body []byte) error {
	if err := r.opts.Store.Take(body, r.opts.Log); err != nil {
		return err
	}
	r.loaded = true
	return nil
}

func (r *Remote) keep(body []byte) error {
	if r.path == "" {
		return nil
	}
	sealed, err := r.key.Seal(body, []byte("certificates"))
	if err != nil {
		return err
	}
	if err := disk.WriteFile(r.path, sealed, 0o600); err != nil {
		return fmt.Errorf("keeping a copy of the certificates: %w", err)
	}
	return nil
}

func (r *Remote) fromDisk() error {
	sealed, err := os.ReadFile(r.path)
	if err != nil {
		return err
	}
	body, err := r.key.Open(sealed, []byte("certificates"))
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return r.take(body)
}
