package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// A setup is a way to run Sluice. All of them have everything on that can be:
// framing guard, timeouts, forwarded headers, metrics, and an access log to a
// file.
type setup struct {
	keys   int  // 0: the API is keyless
	shared bool // counters and sessions are in a store that gateways share
	apis   int  // 0: as many as -apis says
	asked  int  // keys that requests show, of those that there are; 0: all

	policies int // of the keys, each with the same limits; 0: one

	graphql    bool // the API is a GraphQL API
	supergraph bool // the API is a supergraph

	streams map[string]any // of the API; nil: it has an upstream

	live     bool // the API is one of subscriptions
	share    bool // equal ones share an upstream's
	profiled bool // the program is the one with profiles

	patient bool // however long calls wait, none is shed

	settings string // more of the configuration, as YAML

	build  string   // program; "": that of -bin
	policy string   // of the keys; "": the one whose limits are never reached
	beside *running // share the store and the keys of this one
}

// The policies: one whose limits are counted but never reached, and one with a
// quota that is.
const (
	plenty    = "plenty"
	race      = "race"
	raceQuota = 1000
)

func startSluice(s setup) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		if s.apis == 0 {
			s.apis = b.many
		}
		addr, err := rig.FreeAddress()
		if err != nil {
			return nil, err
		}
		dir, err := b.rig.Dir("sluice-" + strings.TrimPrefix(addr, "127.0.0.1:"))
		if err != nil {
			return nil, err
		}
		if s.build == "" {
			s.build = b.bin + "/sluice"
		}
		r := &running{addr: addr, dir: dir}
		env := append(b.goEnv(), "GODEBUG=gctrace=1") // a line for each collection
		if s.profiled {
			if r.profiles, err = rig.FreeAddress(); err != nil {
				return nil, err
			}
			s.build, env = b.bin+"/profiled", append(env, "PROFILES_LISTEN="+r.profiles)
		}
		if !s.patient {
			twin := s
			twin.patient = true
			r.unshed = startSluice(twin)
		}
		if err := b.fill(ctx, s, r, dir); err != nil {
			return nil, err
		}
		began := time.Now()
		r.process, err = b.rig.Start(ctx, rig.Command{
			Name: "sluice", Path: s.build, Args: []string{"gateway", "--config", filepath.Join(dir, "sluice.yaml")}, Ready: addr,
			Env: env,
		})
		if err != nil {
			return nil, err
		}
		if s.streams == nil {
			err = awaitAPI(ctx, addr, apiID(0))
		} else {
			err = awaitStream(ctx, r)
		}
		if err != nil {
			r.stop()
			return nil, fmt.Errorf("%w\n%s", err, r.process.Log())
		}
		r.took = time.Since(began)
		if len(r.keys) > 0 {
			if s.asked > 0 {
				r.keys = r.keys[:s.asked]
			}
			r.request = b.keyed(addr, r.keys)
		}
		return r, nil
	}
}

// fill makes all that a gateway will find when it starts: its store, the keys in
// it, and its files.
func (b *bench) fill(ctx context.Context, s setup, r *running, dir string) (err error) {
	switch {
	case s.beside != nil:
		r.shared, r.keys = s.beside.shared, s.beside.keys
	case s.shared:
		if r.store, r.shared, err = b.startStore(ctx, dir); err != nil {
			return err
		}
	}
	if r.keys == nil {
		if r.keys, err = makeKeys(ctx, place{dir: filepath.Join(dir, "data"), shared: r.shared}, s.policyNames(), s.keys); err != nil {
			return err
		}
	}
	return b.writeSluice(s, dir, r.addr, r.shared)
}

// policyNames are the policies that keys carry in turn.
func (s setup) policyNames() []string {
	if s.policy != "" {
		return []string{s.policy}
	}
	names := []string{plenty}
	for i := 1; i < s.policies; i++ {
		names = append(names, fmt.Sprintf("%s-%06d", plenty, i))
	}
	return names
}

func (b *bench) startStore(ctx context.Context, dir string) (*rig.Process, string, error) {
	program := storeProgram()
	if program == "" {
		return nil, "", fmt.Errorf("redis-server or valkey-server: %w", errAbsent)
	}
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, "", err
	}
	p, err := b.rig.Start(ctx, rig.Command{
		Name: "store", Path: program, Ready: addr,
		Args: []string{"--bind", "127.0.0.1", "--port", fmt.Sprint(rig.Port(addr)), "--dir", dir, "--save", "", "--appendonly", "no"},
	})
	return p, addr, err
}

// writeSluice writes the configuration, the definitions and the policy.
func (b *bench) writeSluice(s setup, dir, addr, store string) error {
	telemetry, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	apps := filepath.Join(dir, "apps")
	conf := fmt.Sprintf(`data_dir: %s
gateway:
  listen: %s
  apps_dir: %s
  policies_file: %s
telemetry:
  listen: %s
keys:
  cache_size: 1200000
log:
  level: warn
  access: file
  access_file: %s
`, filepath.Join(dir, "data"), addr, apps, filepath.Join(dir, "policies.json"), telemetry, filepath.Join(dir, "access.log"))
	if s.keys > someKeys { // asking for all of them in turn takes longer than a session may be used
		conf = strings.Replace(conf, "cache_size", "cache_ttl: 24h\n  cache_size", 1)
	}
	conf += s.settings
	if s.live {
		conf += "http_server_options:\n  enable_websockets: true\n"
	}
	if s.patient {
		conf += "overload:\n  target_delay: 0s\n"
	}
	if store != "" {
		conf += "valkey:\n  url: redis://" + store + "\n"
	}
	file, err := policies(s.policyNames())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policies.json"), file, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(conf), 0o600)
	}
	if err == nil {
		err = b.writeAPIs(s, apps)
	}
	if err != nil {
		return fmt.Errorf("configuring sluice: %w", err)
	}
	return nil
}

// policies returns the policies file. Those of names that are not known are as
// plenty is.
func policies(names []string) ([]byte, error) {
	of := func(id string, numbers map[string]any) map[string]any {
		numbers["id"], numbers["org_id"], numbers["active"] = id, "loadtest", true
		if numbers["access_rights"] == nil {
			numbers["access_rights"] = map[string]any{"bench": map[string]any{"api_id": "bench", "versions": []string{"Default"}}}
		}
		return numbers
	}
	all := make(map[string]any)
	for _, name := range names {
		all[name] = of(name, map[string]any{"rate": 100_000_000, "per": 60, "quota_max": 1_000_000_000, "quota_renewal_rate": 3600})
	}
	all[governed] = of(governed, governedPolicy())
	all[race] = of(race, map[string]any{"quota_max": raceQuota, "quota_renewal_rate": 3600})
	return json.Marshal(all)
}

// writeAPIs writes the API that is measured, and others until there are enough.
func (b *bench) writeAPIs(s setup, apps string) error {
	if err := os.MkdirAll(apps, 0o755); err != nil {
		return err
	}
	for i := range s.apis {
		id := apiID(i)
		api := b.api(id, s.keys == 0)
		if s.graphql && i == 0 {
			sdl, err := os.ReadFile(filepath.Join(b.nodeFiles(), "schema.graphql"))
			if err != nil {
				return err
			}
			api["graphql"] = map[string]any{"enabled": true, "execution_mode": "proxyOnly", "schema": string(sdl)}
		}
		if s.supergraph && i == 0 {
			graph, err := b.supergraph()
			if err != nil {
				return err
			}
			api["graphql"] = graph
		}
		if s.live && i == 0 {
			api["graphql"] = streaming(s.share)
		}
		if s.streams != nil && i == 0 {
			api["x-svc-streaming"] = map[string]any{"streams": s.streams}
		}
		if err := writeAPI(apps, id, api); err != nil {
			return err
		}
	}
	return nil
}

// writeAPI writes one definition atomically: the gateway may be reading.
func writeAPI(apps, id string, api map[string]any) error {
	def, err := json.Marshal(api)
	if err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(apps), "next")
	if err := os.WriteFile(next, def, 0o644); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(apps, id+".json"))
}

// api is a definition whose calls reach the upstream.
func (b *bench) api(id string, keyless bool) map[string]any {
	return map[string]any{
		"api_id": id, "name": id, "org_id": "loadtest", "active": true,
		"use_keyless": keyless, "strip_auth_data": true,
		"proxy": map[string]any{"listen_path": "/" + id + "/", "target_url": "http://" + b.origin, "strip_listen_path": true},
	}
}

// apiID is the name of an API; the first is the one that is measured.
func apiID(i int) string {
	if i == 0 {
		return "bench"
	}
	return fmt.Sprintf("api-%06d", i)
}

// awaitAPI returns once an API is served, even if it refuses the request.
func awaitAPI(ctx context.Context, addr, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/"+id+"/1k", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusNotFound && resp.StatusCode < 500 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sluice does not serve the API: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// makers is how many keys are written at a time: they reach the disk together.
const makers = 256

// A place is where a gateway looks for keys: in its folder, or in the shared
// store when that has an address.
type place struct{ dir, shared string }

// makeKeys writes n keys that carry policies, one each, in turn. Writing them
// through the gateway would take long for a million.
func makeKeys(ctx context.Context, at place, policies []string, n int) ([]string, error) {
	if n == 0 {
		return nil, nil
	}
	store, closeStore, err := openKeys(at)
	if err != nil {
		return nil, fmt.Errorf("making keys: %w", err)
	}
	hasher := credential.Hasher{Algorithm: credential.SHA256, Prefix: credential.DefaultPrefix}
	keys, errs := make([]string, n), make([]error, makers+1)
	var running sync.WaitGroup
	for m := range makers {
		running.Go(func() {
			for i := m; i < n && errs[m] == nil; i += makers {
				keys[i] = credential.Generate(credential.DefaultPrefix)
				errs[m] = store.Put(ctx, hasher.Hash(keys[i]), &definition.Session{OrgID: "loadtest", ApplyPolicies: policies[i%len(policies):][:1]})
			}
		})
	}
	running.Wait()
	errs[makers] = closeStore()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("making keys: %w", err)
		}
	}
	return keys, nil
}

func openKeys(at place) (keystore.Store, func() error, error) {
	if at.shared != "" {
		s, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{at.shared}, Timeout: time.Minute})
		if err != nil {
			return nil, nil, err
		}
		return s, func() error { s.Close(); return nil }, nil
	}
	if err := os.MkdirAll(at.dir, 0o700); err != nil {
		return nil, nil, err
	}
	s, err := keystore.OpenFile(filepath.Join(at.dir, "keys.journal"), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// keyed returns requests that show keys in turn, in an order that caches of the
// processor cannot guess.
func (b *bench) keyed(addr string, keys []string) func(dst []byte, n uint64) []byte {
	const stride = 7919
	head := b.head(addr) + "Authorization: "
	return func(dst []byte, n uint64) []byte {
		dst = append(dst, head...)
		dst = append(dst, keys[n*stride%uint64(len(keys))]...)
		return append(dst, "\r\n\r\n"...)
	}
}
