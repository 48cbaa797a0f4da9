// Package gate runs a gateway on files for a load test, as a process of its own,
// with the APIs, policies and keys that the test gives it.
package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// Org is the organisation of everything that a gate has.
const Org = "loadtest"

// Object is a JSON object.
type Object = map[string]any

// A Site is what gateways are started with.
type Site struct {
	Rig     *rig.Rig
	Program string   // path of sluice, built
	Env     []string // of the gateways
	Origin  string   // host:port of the upstream
}

// A Gate is one gateway: filled first, and then started. It is used by one
// goroutine.
type Gate struct {
	Addr    string       // for traffic
	Secure  string       // for traffic over TLS, once Certify was called
	Process *rig.Process // nil before Start

	site     Site
	dir      string
	lines    []string // of the configuration's part gateway
	upstream []string // of its part upstream
	policies Object
	store    *keystore.File
	hasher   credential.Hasher
}

// New makes a gateway's folder. The rig removes it.
func New(site Site) (*Gate, error) {
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := site.Rig.Dir("gate-" + strings.TrimPrefix(addr, "127.0.0.1:"))
	if err != nil {
		return nil, err
	}
	g := &Gate{
		Addr: addr, site: site, dir: dir, policies: make(Object), lines: []string{"listen: " + addr},
		hasher: credential.Hasher{Algorithm: credential.SHA256, Prefix: credential.DefaultPrefix},
	}
	for _, folder := range []string{g.apps(), g.data()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("making a folder of a gateway: %w", err)
		}
	}
	g.store, err = keystore.OpenFile(filepath.Join(g.data(), "keys.journal"), slog.New(slog.DiscardHandler))
	return g, err
}

func (g *Gate) apps() string { return filepath.Join(g.dir, "apps") }
func (g *Gate) data() string { return filepath.Join(g.dir, "data") }

// Upstream adds a line to the part of the configuration that is about upstreams.
func (g *Gate) Upstream(line string) { g.upstream = append(g.upstream, line) }

// Define returns a definition whose calls reach the upstream: with the members of
// more in place of its own.
func (g *Gate) Define(id string, more Object) Object {
	api := Object{
		"api_id": id, "name": id, "org_id": Org, "active": true,
		"proxy": Object{"listen_path": "/" + id + "/", "target_url": "http://" + g.site.Origin, "strip_listen_path": true},
	}
	maps.Copy(api, more)
	return api
}

// Save writes a definition at once: a running gateway may be looking.
func (g *Gate) Save(api Object) error {
	return g.write(g.apps(), fmt.Sprint(api["api_id"], ".json"), api)
}

func (g *Gate) write(folder, name string, v any) error {
	text, err := json.Marshal(v)
	next := filepath.Join(g.dir, "next")
	if err == nil {
		err = os.WriteFile(next, text, 0o600)
	}
	if err == nil {
		err = os.Rename(next, filepath.Join(folder, name))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// Policy adds a policy without limits that opens APIs.
func (g *Gate) Policy(id string, apis ...string) {
	rights := make(Object)
	for _, api := range apis {
		rights[api] = Object{"api_id": api, "versions": []string{"Default", "v1", "v2"}}
	}
	g.policies[id] = Object{"id": id, "org_id": Org, "active": true, "quota_max": -1, "access_rights": rights}
}

// Key makes a key with a session, and User a user. They are called before Start.
func (g *Gate) Key(ctx context.Context, s *definition.Session) (string, error) {
	key := credential.Generate(credential.DefaultPrefix)
	return key, g.put(ctx, key, s)
}

// User makes a user whose password the session holds, hashed.
func (g *Gate) User(ctx context.Context, name string, s *definition.Session) error {
	return g.put(ctx, Org+name, s)
}

func (g *Gate) put(ctx context.Context, credential string, s *definition.Session) error {
	s.OrgID = Org
	if err := g.store.Put(ctx, g.hasher.Hash(credential), s); err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	return nil
}

// Start runs the gateway and returns once the API with the id is served.
func (g *Gate) Start(ctx context.Context, id string) error {
	if err := g.store.Close(); err != nil {
		return fmt.Errorf("making keys: %w", err)
	}
	if err := g.write(g.dir, "policies.json", g.policies); err != nil {
		return err
	}
	if err := g.configure(); err != nil {
		return fmt.Errorf("configuring sluice: %w", err)
	}
	process, err := g.site.Rig.Start(ctx, rig.Command{
		Name: "sluice", Path: g.site.Program, Args: []string{"gateway", "--config", filepath.Join(g.dir, "sluice.yaml")}, Ready: g.Addr, Env: g.site.Env,
	})
	if err != nil {
		return err
	}
	g.Process = process
	if err := g.awaits(ctx, id); err != nil {
		process.Stop()
		return fmt.Errorf("%w\n%s", err, process.Log())
	}
	return nil
}

// configure writes the configuration: everything on that can be.
func (g *Gate) configure() error {
	telemetry, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	conf := "data_dir: " + g.data() + "\ngateway:\n  apps_dir: " + g.apps() + "\n  policies_file: " + filepath.Join(g.dir, "policies.json") +
		"\n  " + strings.Join(g.lines, "\n  ") + "\ntelemetry:\n  listen: " + telemetry +
		"\nlog:\n  level: warn\n  access: file\n  access_file: " + filepath.Join(g.dir, "access.log") + "\n"
	if len(g.upstream) > 0 {
		conf += "upstream:\n  " + strings.Join(g.upstream, "\n  ") + "\n"
	}
	return os.WriteFile(filepath.Join(g.dir, "sluice.yaml"), []byte(conf), 0o600)
}

// awaits returns once an API is served, whatever it answers to whom it does not
// know.
func (g *Gate) awaits(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Addr+"/"+id+"/1k", http.NoBody)
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
			return fmt.Errorf("sluice does not serve the API %s: %w", id, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Reload has the gateway read its files. It does so soon, and once for several
// wishes that come meanwhile.
func (g *Gate) Reload() error {
	if err := syscall.Kill(g.Process.Pid(), syscall.SIGHUP); err != nil {
		return fmt.Errorf("sending SIGHUP: %w", err)
	}
	return nil
}
