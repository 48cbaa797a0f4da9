package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sluicegate/sluice/loadtest/conf"
)

// startCosmo runs Cosmo's router where it was built: it takes minutes.
func startCosmo(ctx context.Context, b *bench) (*running, error) {
	path := filepath.Join(b.bin, "cosmo-router")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cosmo-router: %w (make loadtest OTHERS=1 builds it)", errAbsent)
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
		conf: func(p conf.Proxy) string { return conf.Cosmo(p, graph) },
	})
}
