package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
}

const (
	secret = "loadtest-4f1c2ab95d"
	policy = "loadtest"
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
		r := &running{addr: addr}
		store := ""
		if s.shared {
			if r.store, store, err = b.startStore(ctx, dir); err != nil {
				return nil, err
			}
		}
		if err := b.writeSluice(s, dir, addr, store); err != nil {
			return nil, err
		}
		r.process, err = b.rig.Start(ctx, rig.Command{
			Name: "sluice", Path: b.bin + "/sluice", Args: []string{"gateway", "--config", filepath.Join(dir, "sluice.yaml")}, Env: b.goEnv(), Ready: addr,
		})
		if err != nil {
			return nil, err
		}
		if err := awaitAPI(ctx, addr); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, r.process.Log())
		}
		if s.keys > 0 {
			r.request, err = b.keyed(ctx, addr, s.keys)
		}
		return r, err
	}
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
	conf := fmt.Sprintf(`secret: %s
data_dir: %s
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
`, secret, filepath.Join(dir, "data"), addr, apps, filepath.Join(dir, "policies.json"), telemetry, filepath.Join(dir, "access.log"))
	if store != "" {
		conf += "valkey:\n  url: redis://" + store + "\n"
	}
	err = os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(conf), 0o600)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policies.json"), []byte(policies), 0o600)
	}
	if err == nil {
		err = b.writeAPIs(s, apps)
	}
	if err != nil {
		return fmt.Errorf("configuring sluice: %w", err)
	}
	return nil
}

// policies is one policy with numbers that are counted but never reached.
const policies = `{"` + policy + `": {
  "id": "` + policy + `", "org_id": "loadtest", "active": true,
  "rate": 100000000, "per": 60, "quota_max": 1000000000, "quota_renewal_rate": 3600,
  "access_rights": {"bench": {"api_id": "bench", "versions": ["Default"]}}
}}`

// writeAPIs writes the API that is measured, and others until there are enough.
func (b *bench) writeAPIs(s setup, apps string) error {
	if err := os.MkdirAll(apps, 0o755); err != nil {
		return err
	}
	for i := range s.apis {
		id := fmt.Sprintf("api-%06d", i)
		if i == 0 {
			id = "bench"
		}
		def, err := json.Marshal(map[string]any{
			"api_id": id, "name": id, "org_id": "loadtest", "active": true,
			"use_keyless": s.keys == 0, "strip_auth_data": true,
			"proxy": map[string]any{"listen_path": "/" + id + "/", "target_url": "http://" + b.origin, "strip_listen_path": true},
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(apps, id+".json"), def, 0o644); err != nil {
			return err
		}
	}
	return nil
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

// keyed makes keys and returns requests that show them in turn.
func (b *bench) keyed(ctx context.Context, addr string, n int) (func(dst []byte, n uint64) []byte, error) {
	keys, err := makeKeys(ctx, addr, n)
	if err != nil {
		return nil, err
	}
	head := b.head(addr) + "Authorization: "
	return func(dst []byte, i uint64) []byte {
		dst = append(dst, head...)
		dst = append(dst, keys[i%uint64(len(keys))]...)
		return append(dst, "\r\n\r\n"...)
	}, nil
}

// makers is how many keys are made at a time: they reach the disk together.
const makers = 32

func makeKeys(ctx context.Context, addr string, n int) ([]string, error) {
	keys, errs := make([]string, n), make([]error, makers)
	var running sync.WaitGroup
	for m := range makers {
		running.Go(func() {
			for i := m; i < n && errs[m] == nil; i += makers {
				keys[i], errs[m] = makeKey(ctx, addr)
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("making keys: %w", err)
		}
	}
	return keys, nil
}

func makeKey(ctx context.Context, addr string) (string, error) {
	session := []byte(`{"org_id": "loadtest", "apply_policies": ["` + policy + `"]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/svc/keys/create", bytes.NewReader(session))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Svc-Authorization", secret)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var made struct{ Key, Message string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil {
		return "", fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	if resp.StatusCode != http.StatusOK || made.Key == "" {
		return "", fmt.Errorf("status %d: %s", resp.StatusCode, made.Message)
	}
	return made.Key, nil
}
