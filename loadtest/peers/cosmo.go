package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// cosmoConf has the router check depth, with its caches on, and none of what it
// would report to others.
const cosmoConf = `
version: "1"
listen_addr: %[1]s
graphql_path: /bench/graphql
log_level: error
introspection_enabled: false
playground:
  enabled: false
execution_config:
  file:
    path: %[2]s
telemetry:
  tracing:
    enabled: false
  metrics:
    otlp:
      enabled: false
    prometheus:
      enabled: false
graphql_metrics:
  enabled: false
access_logs:
  enabled: false
traffic_shaping:
  all:
    max_idle_conns_per_host: 1024
security:
  complexity_calculation_cache:
    enabled: true
  complexity_limits:
    depth:
      enabled: true
      limit: 5
`

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
	return b.startConfigured(ctx, configured{name: "cosmo-router", path: path, env: b.goEnv()}, func(dir, addr string) (string, []string) {
		return fmt.Sprintf(cosmoConf, addr, graph), []string{"-config", filepath.Join(dir, "conf")}
	})
}
