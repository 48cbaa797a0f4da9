package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// goProxy starts a proxy of these load tests' own, by the name of its program.
func goProxy(name string) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		addr, err := rig.FreeAddress()
		if err != nil {
			return nil, err
		}
		p, err := b.rig.Start(ctx, rig.Command{
			Name: name, Path: filepath.Join(b.bin, name), Args: []string{"-addr", addr, "-origin", b.origin}, Env: b.goEnv(), Ready: addr,
		})
		return &running{process: p, addr: addr}, err
	}
}

// startHAProxy runs HAProxy; with keys it governs them.
func startHAProxy(keys int) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		path, err := installed("haproxy")
		if err != nil {
			return nil, err
		}
		return b.startConfigured(ctx, configured{name: "haproxy", path: path, keys: keys, conf: haproxyConfig, args: []string{"-db", "-f", "conf"}})
	}
}

// startNginx runs nginx; with keys its Lua module governs them.
func startNginx(keys int) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		path, err := installed("nginx")
		if err != nil {
			return nil, err
		}
		for _, module := range luaModules() {
			if _, err := os.Stat(module); err != nil && keys > 0 {
				return nil, fmt.Errorf("%s: %w", module, errAbsent)
			}
		}
		return b.startConfigured(ctx, configured{name: "nginx", path: path, keys: keys, conf: nginxConfig, args: []string{"-p", ".", "-e", "stderr", "-c", "conf"}})
	}
}

// configured is a program that runs in a folder of its own and reads a file named
// conf there, and with keys one named keys.
type configured struct {
	name string
	path string
	args []string
	env  []string // in addition to the rig's
	keys int
	conf func(proxy) string
}

// startConfigured starts one.
func (b *bench) startConfigured(ctx context.Context, c configured) (*running, error) {
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := b.rig.Dir(c.name + "-" + strings.TrimPrefix(addr, "127.0.0.1:"))
	if err != nil {
		return nil, err
	}
	r := &running{addr: addr}
	if c.keys > 0 {
		r.keys = make([]string, c.keys)
		var lines strings.Builder
		for i := range r.keys {
			r.keys[i] = credential.Generate(credential.DefaultPrefix)
			fmt.Fprintf(&lines, "%s %s\n", r.keys[i], plenty)
		}
		if err := os.WriteFile(filepath.Join(dir, "keys"), []byte(lines.String()), 0o600); err != nil {
			return nil, fmt.Errorf("writing keys for %s: %w", c.name, err)
		}
		r.request = b.keyed(addr, r.keys)
	}
	text := c.conf(proxy{Dir: dir, Addr: addr, Origin: b.origin, Procs: b.procs, Keys: c.keys > 0})
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("configuring %s: %w", c.name, err)
	}
	r.process, err = b.rig.Start(ctx, rig.Command{Name: c.name, Path: c.path, Args: c.args, Env: append(c.env, "HOME="+dir), Dir: dir, Ready: addr})
	return r, err
}

// startCosmo runs Cosmo's router where it was built: it takes minutes.
func startCosmo(ctx context.Context, b *bench) (*running, error) {
	path := filepath.Join(b.bin, "cosmo-router")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cosmo-router: %w (make loadtest COSMO=1 builds it)", errAbsent)
	}
	dir, err := b.rig.Dir("cosmo-graph")
	if err != nil {
		return nil, err
	}
	graph := filepath.Join(dir, "graph.json")
	compose := exec.CommandContext(ctx, filepath.Join(b.bin, "cosmo"), filepath.Join(b.nodeFiles(), "schema.graphql"), "http://"+b.origin+"/graphql", graph)
	if out, err := compose.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("composing a graph: %w: %s", err, out)
	}
	return b.startConfigured(ctx, configured{
		name: "cosmo-router", path: path, env: b.goEnv(), args: []string{"-config", "conf"},
		conf: func(p proxy) string { return cosmoConfig(p, graph) },
	})
}
