package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

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

	graphql bool // the API is a GraphQL API

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
		r := &running{addr: addr}
		if err := b.fill(ctx, s, r, dir); err != nil {
			return nil, err
		}
		r.process, err = b.rig.Start(ctx, rig.Command{
			Name: "sluice", Path: s.build, Args: []string{"gateway", "--config", filepath.Join(dir, "sluice.yaml")}, Env: b.goEnv(), Ready: addr,
		})
		if err != nil {
			return nil, err
		}
		if err := awaitAPI(ctx, addr); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, r.process.Log())
		}
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
		of := s.policy
		if of == "" {
			of = plenty
		}
		if r.keys, err = makeKeys(ctx, place{dir: filepath.Join(dir, "data"), shared: r.shared}, of, s.keys); err != nil {
			return err
		}
	}
	return b.writeSluice(s, dir, r.addr, r.shared)
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
	if store != "" {
		conf += "valkey:\n  url: redis://" + store + "\n"
	}
	file, err := policies()
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

// policies returns the policies file.
func policies() ([]byte, error) {
	of := func(id string, numbers map[string]any) map[string]any {
		numbers["id"], numbers["org_id"], numbers["active"] = id, "loadtest", true
		if numbers["access_rights"] == nil {
			numbers["access_rights"] = map[string]any{"bench": map[string]any{"api_id": "bench", "versions": []string{"Default"}}}
		}
		return numbers
	}
	return json.Marshal(map[string]any{
		plenty:   of(plenty, map[string]any{"rate": 100_000_000, "per": 60, "quota_max": 1_000_000_000, "quota_renewal_rate": 3600}),
		governed: of(governed, governedPolicy()),
		race:     of(race, map[string]any{"quota_max": raceQuota, "quota_renewal_rate": 3600}),
	})
}

// writeAPIs writes the API that is measured, and others until there are enough.
func (b *bench) writeAPIs(s setup, apps string) error {
	if err := os.MkdirAll(apps, 0o755); err != nil {
		return err
	}
	for i := range s.apis {
		id := apiID(i)
		api := map[string]any{
			"api_id": id, "name": id, "org_id": "loadtest", "active": true,
			"use_keyless": s.keys == 0, "strip_auth_data": true,
			"proxy": map[string]any{"listen_path": "/" + id + "/", "target_url": "http://" + b.origin, "strip_listen_path": true},
		}
		if s.graphql && i == 0 {
			sdl, err := os.ReadFile(filepath.Join(b.nodeFiles(), "schema.graphql"))
			if err != nil {
				return err
			}
			api["graphql"] = map[string]any{"enabled": true, "execution_mode": "proxyOnly", "schema": string(sdl)}
		}
		def, err := json.Marshal(api)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(apps, id+".json"), def, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// apiID is the name of an API; the first is the one that is measured.
func apiID(i int) string {
	if i == 0 {
		return "bench"
	}
	return fmt.Sprintf("api-%06d", i)
}

// awaitAPI returns once the API that is measured is served, whatever it answers
// to whom it does not know.
func awaitAPI(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/bench/1k", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusUnauthorized {
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
