package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// governed is the policy of GraphQL keys: all limits and rules that there are,
// none of which the operation breaks.
const governed = "governed"

func governedPolicy() map[string]any {
	return map[string]any{
		"rate": 100_000_000, "per": 60, "quota_max": 1_000_000_000, "quota_renewal_rate": 3600,
		"max_query_depth": 5, "max_query_aliases": 10, "max_query_cost": 1000,
		"access_rights": map[string]any{"bench": map[string]any{
			"api_id": "bench", "versions": []string{"Default"}, "disable_introspection": true,
			"restricted_types":    []any{map[string]any{"name": "Country", "fields": []string{"native"}}},
			"field_access_rights": []any{map[string]any{"type_name": "Query", "field_name": "countries", "limits": map[string]any{"max_query_depth": 4}}},
		}},
	}
}

// measureGraphQL compares one operation through everybody, the first being the
// bare proxy, to which it is bytes like any other.
func measureGraphQL(ctx context.Context, b *bench) error {
	b = b.withBody("graphql")
	all := []contender{
		{"bare fasthttp, the same bytes", b.asking(false, goProxy("bare"))},
		{"bare fasthttp, again", b.asking(false, goProxy("bare"))},
		{"nginx, the same bytes", b.asking(false, startNginx(0))},
	}
	for _, build := range append([]string{""}, b.others...) {
		all = append(all,
			contender{nameOf("Sluice, REST, token + policy + rate + quota", build), b.asking(false, startSluice(setup{keys: 1, build: build}))},
			contender{nameOf("Sluice, GraphQL, with depth and field rules as well", build), b.asking(false, startSluice(setup{keys: 1, policy: governed, graphql: true, build: build}))},
			contender{nameOf("Sluice, GraphQL, no operation seen before", build), b.asking(true, startSluice(setup{keys: 1, policy: governed, graphql: true, build: build}))})
	}
	all = append(all,
		contender{"Cosmo Router, depth", b.asking(false, startCosmo)},
		contender{"graphql-yoga, depth", b.asking(false, startYoga)},
		contender{"Apollo Server and Gateway, depth", b.asking(false, startApollo)},
		contender{"Hive Gateway, depth", b.asking(false, startHive)})
	started, err := b.startAll(ctx, b.chosen(all))
	if err != nil {
		return err
	}
	turns, err := b.rotate(ctx, started)
	if err != nil {
		return err
	}
	b.printf("### One GraphQL operation, CPU time per request, %d rounds of %v; the ratio is to the bare proxy with the same bytes\n\n", b.rounds, b.round)
	b.printCPU(turns)
	return nil
}

// asking makes a contender's requests operations.
func (b *bench) asking(unseen bool, start func(context.Context, *bench) (*running, error)) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		r, err := start(ctx, b)
		if err == nil {
			r.ask = askOperations(unseen)
			r.ask(r)
		}
		return r, err
	}
}

func askOperations(unseen bool) func(*running) {
	return func(r *running) { r.request = operations(r, unseen) }
}

// operations returns requests that post the operation.
func operations(r *running, unseen bool) func(dst []byte, n uint64) []byte {
	head := "POST /bench/graphql HTTP/1.1\r\nHost: " + r.addr +
		"\r\nUser-Agent: loadtest/1.0\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
	if len(r.keys) > 0 {
		head += "Authorization: " + r.keys[0] + "\r\n"
	}
	head += "Content-Length: " + strconv.Itoa(len(answer.AppendOperation(nil, 0, unseen))) + "\r\n\r\n"
	return func(dst []byte, n uint64) []byte {
		return answer.AppendOperation(append(dst, head...), n, unseen)
	}
}

// nodeFiles is where the servers for Node.js are.
func (b *bench) nodeFiles() string { return filepath.Join(b.files, "node") }

func startYoga(ctx context.Context, b *bench) (*running, error) {
	return b.startNode(ctx, "graphql-yoga", func(port string) []string {
		return []string{"yoga.mjs", port, b.origin}
	})
}

func startApollo(ctx context.Context, b *bench) (*running, error) {
	return b.startNode(ctx, "@apollo/gateway", func(port string) []string {
		return []string{"apollo.mjs", port, b.origin}
	})
}

func startHive(ctx context.Context, b *bench) (*running, error) {
	return b.startNode(ctx, "@graphql-hive/gateway", func(port string) []string {
		return []string{"node_modules/.bin/hive-gateway", "proxy", "-c", "hive.config.mjs", "-h", "127.0.0.1", "-p", port}
	})
}

// startNode runs a server of a package that npm has installed.
func (b *bench) startNode(ctx context.Context, from string, args func(port string) []string) (*running, error) {
	node, err := installed("node")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(b.nodeFiles(), "node_modules", from)); err != nil {
		return nil, fmt.Errorf("%s: %w", from, errAbsent)
	}
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	p, err := b.rig.Start(ctx, rig.Command{
		Name: filepath.Base(from), Path: node, Args: args(strconv.Itoa(rig.Port(addr))), Dir: b.nodeFiles(),
		Env: []string{"ORIGIN=" + b.origin, "NODE_ENV=production"}, Ready: addr,
	})
	return &running{process: p, addr: addr, anew: true}, err
}
