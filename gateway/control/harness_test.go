package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

const testSecret = "352d20ee67be67f6340b4c0605b044b7"

// served stands for the gateway: it puts bundles in force as they come.
type served struct {
	bundle atomic.Pointer[definition.Bundle]
	stale  atomic.Bool
}

func (s *served) put(b *definition.Bundle) map[string]error {
	s.bundle.Store(b)
	return s.Failed()
}

func (s *served) Revision() string {
	if b := s.bundle.Load(); b != nil {
		return b.Revision
	}
	return ""
}

func (s *served) APIs() []*definition.API {
	b := s.bundle.Load()
	if b == nil {
		return nil
	}
	return slices.SortedFunc(slices.Values(b.APIs), func(x, y *definition.API) int { return strings.Compare(x.ID, y.ID) })
}

func (s *served) API(id string) *definition.API {
	for _, api := range s.APIs() {
		if api.ID == id {
			return api
		}
	}
	return nil
}

func (s *served) Policies() *definition.PolicySet {
	if b := s.bundle.Load(); b != nil {
		return definition.NewPolicySet(b.Policies)
	}
	return nil
}

func (s *served) Failed() map[string]error {
	failed := make(map[string]error)
	if b := s.bundle.Load(); b != nil {
		for _, skipped := range b.Skipped {
			failed[skipped.Source] = errors.New(skipped.Reason)
		}
	}
	return failed
}

func (s *served) Origin() Origin {
	return Origin{Source: "files", Since: time.Now(), Stale: s.stale.Load()}
}

// follow serves what a source supplies until t ends. With steps it asks for a
// bundle only when there is one of those.
func (s *served) follow(t *testing.T, src source.Source, steps <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for have := ""; ; {
			b, err := src.Next(ctx, have)
			if err != nil {
				return
			}
			have = b.Revision
			src.Applied(b, s.put(b))
			select {
			case <-steps:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// stepped reads files when a reload is asked for and at no other time.
type stepped struct {
	*source.Files
	steps chan struct{}
}

func (s stepped) Reload(ctx context.Context) error {
	s.steps <- struct{}{}
	return s.Files.Reload(ctx)
}

// heard keeps the events.
type heard struct {
	mu  sync.Mutex
	all []event.Event
}

func (h *heard) Raise(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

func (h *heard) take() []event.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := h.all
	h.all = nil
	return taken
}

// A bench is a gateway API on files, with a client.
type bench struct {
	t        *testing.T
	api      *API
	live     *served
	apps     string
	policies string
	events   *heard
	log      *testenv.Log
	dial     func() (net.Conn, error)
	client   *http.Client

	keys     keystore.Store
	counters *counter.Memory
	service  *keys.Service
}

// onFiles starts a gateway API whose definitions are files. adjust may change
// what it is made of.
func onFiles(t *testing.T, adjust ...func(*Deps)) *bench {
	t.Helper()
	b := &bench{t: t, live: new(served), events: new(heard), log: new(testenv.Log)}
	dir := t.TempDir()
	b.apps, b.policies = filepath.Join(dir, "apps"), filepath.Join(dir, "policies.json")
	if err := os.Mkdir(b.apps, 0o750); err != nil {
		t.Fatal(err)
	}
	src := source.NewFiles(source.FilesOptions{AppsDir: b.apps, PoliciesFile: b.policies, Log: slog.New(slog.DiscardHandler)})
	steps := make(chan struct{}, 1)
	b.live.follow(t, src, steps)
	files, err := NewFiles(FilesOptions{AppsDir: b.apps, PoliciesFile: b.policies, Live: b.live})
	if err != nil {
		t.Fatal(err)
	}
	deps := Deps{
		Secret: secret.New(testSecret), LoginRate: 10_000, Live: b.live, Definitions: files, Keys: b.localKeys(), ListKeys: true,
		Reloader: stepped{src, steps}, Events: b.events, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, change := range adjust {
		change(&deps)
	}
	b.start(deps)
	return b
}

// localKeys are keys in memory.
func (b *bench) localKeys() LocalKeys {
	b.counters, b.keys = counter.NewMemory(nil), keystore.NewMemory()
	b.service = &keys.Service{
		Store: keys.Direct{Keys: b.keys, Counters: b.counters}, Counter: b.counters,
		Policies: b.live.Policies, API: b.live.API, Orgs: func() []string { return []string{"acme"} },
		Options: keys.Options{Hasher: &credential.Hasher{Prefix: credential.DefaultPrefix}}, Now: time.Now,
	}
	return LocalKeys{Service: b.service}
}

func (b *bench) start(deps Deps) {
	b.t.Helper()
	deps.OrgLimits = true
	var err error
	if b.api, err = New(deps); err != nil {
		b.t.Fatal(err)
	}
	b.api.reloads.every = time.Millisecond
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.api.Run(ctx) }()
	ln := fasthttputil.NewInmemoryListener()
	server := &fasthttp.Server{Handler: b.api.Handle, StreamRequestBody: true, MaxRequestBodySize: 16 << 10, CloseOnShutdown: true}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(ln) }()
	b.dial = ln.Dial
	b.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return ln.Dial() },
		DisableKeepAlives: true,
	}}
	wait.Until(b.t, "the first configuration is in force", func() bool { return b.live.Revision() != "" })
	b.t.Cleanup(func() {
		cancel()
		<-ended
		_ = ln.Close()
		b.t.Log(<-stopped)
	})
}

// response is an answer with its body read.
type response struct {
	status int
	header http.Header
	body   string
}

// call makes a call with the secret.
func (b *bench) call(method, path, body string) response {
	b.t.Helper()
	return b.send(method, path, body, http.Header{"X-Svc-Authorization": {testSecret}})
}

func (b *bench) send(method, path, body string, header http.Header) response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header = header
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response{status: resp.StatusCode, header: resp.Header, body: string(data)}
}

// want checks an answer exactly.
func (b *bench) want(method, path, body string, status int, answer string) response {
	b.t.Helper()
	got := b.call(method, path, body)
	if got.status != status || got.body != answer {
		b.t.Errorf("%s %s: %d %s\nwant %d %s", method, path, got.status, got.body, status, answer)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		b.t.Errorf("%s %s: Content-Type %q", method, path, kind)
	}
	return got
}

// reload has what is stored come into force.
func (b *bench) reload() {
	b.t.Helper()
	if got := b.call("GET", "/svc/reload?block=true", ""); got.status != 200 {
		b.t.Fatalf("reload: %d %s", got.status, got.body)
	}
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.apps, name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// files lists the apps folder.
func (b *bench) files() string {
	b.t.Helper()
	entries, err := os.ReadDir(b.apps)
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// decoded reads an answer's body.
func decoded[T any](t *testing.T, got response) T {
	t.Helper()
	var into T
	if err := json.Unmarshal([]byte(got.body), &into); err != nil {
		t.Fatalf("%q: %v", got.body, err)
	}
	return into
}

// definitionOf is a small API, with more members if wanted.
func definitionOf(id, more string) string {
	name := ""
	if id != "" {
		name = `"api_id":"` + id + `",`
	}
	return `{` + name + more + `"name":"n","use_keyless":true,"proxy":{"listen_path":"/at-` + id + `/","target_url":"http://upstream.example"}}`
}

func failed(message string) string { return `{"status":"error","message":"` + message + `"}` }

func done(key, action string) string {
	return `{"key":"` + key + `","status":"ok","action":"` + action + `"}`
}

func namesOf[T any](m map[string]T) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }
