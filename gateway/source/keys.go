package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/sleep"
)

// KeysOptions are the settings of Keys.
type KeysOptions struct {
	URL       string            // of the admin
	Token     secret.Value      // bearer token for the admin
	Transport http.RoundTripper // nil: Go's own
	Gateway   string            // name of this gateway, for the admin's list
	StateDir  string            // where the keys of Seal are kept; "": nowhere
	Seal      *keystore.Seal    // accepts what the admin seals; nil: sessions are not sealed
	Log       *slog.Logger
}

// Keys asks the admin for keys, and follows their changes by long-polling.
type Keys struct {
	opts   KeysOptions
	base   string
	client *http.Client
	away   bool     // the last poll failed
	last   [][]byte // the keys of Seal that are on disk
}

// maxKeysAnswer bounds an answer about keys, in bytes.
const maxKeysAnswer = 16 << 20

// NewKeys returns Keys. It fails if the URL is invalid.
func NewKeys(o KeysOptions) (*Keys, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("gateway.admin_url: %q is not a URL such as http://admin:8081", o.URL)
	}
	k := &Keys{opts: o, base: strings.TrimSuffix(o.URL, "/"), client: &http.Client{
		Transport:     o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if o.Transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = 16
		k.client.Transport = own
	}
	k.recall()
	return k, nil
}

// Session returns the session of a key of any organisation. The error is
// keystore.ErrNotFound or wraps keystore.ErrUnavailable.
func (k *Keys) Session(ctx context.Context, keyHash string) (*definition.Session, error) {
	body, err := json.Marshal(map[string]string{"key_hash": keyHash})
	if err != nil {
		return nil, err
	}
	var found struct {
		Session *definition.Session `json:"session"`
	}
	err = k.call(ctx, http.MethodPost, "/api/gateway/keys/lookup", body, &found)
	refused, isRefusal := errors.AsType[*refusedError](err)
	switch {
	case isRefusal && refused.status == http.StatusNotFound && refused.Message == definition.KeyNotFound:
		return nil, keystore.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("%w: %w", keystore.ErrUnavailable, err)
	case found.Session == nil:
		return nil, fmt.Errorf("%w: the admin answered without a session", keystore.ErrUnavailable)
	}
	return found.Session, nil
}

// Follow calls changed with the hash of every key that is created, changed or deleted at
// the admin, and with "" when any may have been, until ctx ends. While the admin is away
// it tries again; what changed meanwhile is reported afterwards.
func (k *Keys) Follow(ctx context.Context, changed func(keyHash string)) {
	position := ""
	for wait := time.Duration(0); ctx.Err() == nil; {
		news, err := k.poll(ctx, position)
		if err != nil {
			k.fail(ctx, err)
			wait = min(wait*2+50*time.Millisecond, time.Second)
			_ = sleep.For(ctx, wait/2+rand.N(wait/2))
			continue
		}
		wait = 0
		k.back()
		k.accept(news.SealKeys)
		if news.Reset {
			changed("")
		}
		for _, hash := range news.Changed {
			if hash != "" {
				changed(hash)
			}
		}
		position = news.Position
	}
}

// poll waits for changes after a position.
func (k *Keys) poll(ctx context.Context, position string) (*definition.KeyChanges, error) {
	ctx, cancel := context.WithTimeout(ctx, pollFor+answerWithin)
	defer cancel()
	path := "/api/gateway/keys/changes?wait=" + pollFor.String() + "&position=" + url.QueryEscape(position)
	var news definition.KeyChanges
	if err := k.call(ctx, http.MethodGet, path, nil, &news); err != nil {
		return nil, err
	}
	return &news, nil
}

// call makes a call and decodes the answer. An answer that is not 200 is an error.
func (k *Keys) call(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, k.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+k.opts.Token.Reveal())
	req.Header.Set("X-Sluice-Gateway", k.opts.Gateway)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxKeysAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		refused := &refusedError{status: resp.StatusCode}
		if json.Unmarshal(data, refused) != nil {
			refused.Message = string(data[:min(len(data), 200)]) // of something that is no admin
		}
		return refused
	}
	return json.Unmarshal(data, into)
}

// A refusedError is an answer of the admin other than 200.
type refusedError struct {
	status  int
	Message string
}

// Error returns the status and the message.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the admin answered %d: %s", e.status, e.Message)
}

func (k *Keys) fail(ctx context.Context, err error) {
	if !k.away && ctx.Err() == nil {
		k.opts.Log.Warn("changes of keys are not heard from the admin", "admin", k.opts.URL, "err", err)
	}
	k.away = true
}

func (k *Keys) back() {
	if k.away {
		k.opts.Log.Info("changes of keys are heard from the admin again", "admin", k.opts.URL)
	}
	k.away = false
}

// sealPurpose separates the key that encrypts the file from other uses of the token.
const sealPurpose = "keys of the seal"

func (k *Keys) sealFile() string { return filepath.Join(k.opts.StateDir, "seal-keys.sealed") }

// accept makes the sessions acceptable that the admin seals now, and keeps the keys for a
// start without the admin.
func (k *Keys) accept(sealKeys [][]byte) {
	if k.opts.Seal == nil || len(sealKeys) == 0 || equalKeys(sealKeys, k.last) {
		return
	}
	k.opts.Seal.Accept(sealKeys)
	k.last = sealKeys
	if err := k.keep(sealKeys); err != nil {
		k.opts.Log.Error("keeping the keys that authenticate sessions", "err", err)
	}
}

func equalKeys(a, b [][]byte) bool {
	return bytes.Equal(bytes.Join(a, nil), bytes.Join(b, nil))
}

func (k *Keys) keep(sealKeys [][]byte) error {
	if k.opts.StateDir == "" || k.opts.Token.Empty() {
		return nil
	}
	key, err := secret.DeriveKey(k.opts.Token, sealPurpose)
	if err != nil {
		return err
	}
	text, err := json.Marshal(sealKeys)
	if err != nil {
		return err
	}
	sealed, err := key.Seal(text, []byte(sealPurpose))
	if err != nil {
		return err
	}
	return disk.WriteFile(k.sealFile(), sealed, 0o600)
}

// recall accepts what was accepted before a restart.
func (k *Keys) recall() {
	if k.opts.Seal == nil || k.opts.StateDir == "" || k.opts.Token.Empty() {
		return
	}
	sealed, err := os.ReadFile(k.sealFile())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var text []byte
	var key secret.Key
	if err == nil {
		key, err = secret.DeriveKey(k.opts.Token, sealPurpose)
	}
	if err == nil {
		text, err = key.Open(sealed, []byte(sealPurpose))
	}
	if err == nil {
		err = json.Unmarshal(text, &k.last)
	}
	if err != nil {
		k.opts.Log.Warn("the keys that authenticate sessions are taken from the admin: those on disk cannot be read", "err", err)
		return
	}
	k.opts.Seal.Accept(k.last)
}
