package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sluicegate/sluice/bench/answer"
)

// measureFederation compares one operation that joins entities of two subgraphs. The
// subgraphs are the origin, which answers each with a fixed body.
func measureFederation(ctx context.Context, b *bench) error {
	all := []contender{{"Sluice, keyless", b.joining(startSluice(setup{apis: 1, supergraph: true, profiled: b.profiles != ""}))}}
	for _, build := range b.others {
		all = append(all, contender{nameOf("Sluice, keyless", build), b.joining(startSluice(setup{apis: 1, supergraph: true, build: build}))})
	}
	all = append(all,
		contender{"Sluice, keyless, again", b.joining(startSluice(setup{apis: 1, supergraph: true}))},
		contender{"Sluice, token + policy + rate + quota", b.joining(startSluice(setup{apis: 1, supergraph: true, keys: 1}))},
		contender{"Apollo Server and Gateway", b.joining(startNodeOf("@apollo/gateway", "apollo-federation.mjs"))},
		contender{"Hive Gateway", b.joining(startHiveFederation)})
	started, err := b.startAll(ctx, b.chosen(all))
	if err != nil {
		return err
	}
	defer b.profileAll("federation", started)()
	turns, err := b.rotate(ctx, started)
	if err != nil {
		return err
	}
	b.printf("### One GraphQL operation over two subgraphs, CPU time per request, %d rounds of %v; the ratio is to Sluice\n\n", b.rounds, b.round)
	b.printCPU(turns)
	return nil
}

// supergraph returns the graph of the API that is measured.
func (b *bench) supergraph() (map[string]any, error) {
	var members []any
	for _, name := range []string{"products", "reviews"} {
		sdl, err := os.ReadFile(filepath.Join(b.nodeFiles(), name+".graphql"))
		if err != nil {
			return nil, err
		}
		members = append(members, map[string]any{"name": name, "url": "http://" + b.origin + "/" + name, "sdl": string(sdl)})
	}
	return map[string]any{"enabled": true, "execution_mode": "supergraph", "supergraph": map[string]any{"subgraphs": members}}, nil
}

// joining makes a contender's requests operations over both subgraphs.
func (b *bench) joining(start func(context.Context, *bench) (*running, error)) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		r, err := start(ctx, b)
		if err == nil {
			r.ask = func(r *running) { r.body, r.request = []byte(answer.Joined), joins(r) }
			r.ask(r)
		}
		return r, err
	}
}

func joins(r *running) func(dst []byte, n uint64) []byte {
	body, _ := json.Marshal(map[string]any{"query": "{ top { upc name stars } }"})
	head := "POST /bench/graphql HTTP/1.1\r\nHost: " + r.addr +
		"\r\nUser-Agent: loadtest/1.0\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
	if len(r.keys) > 0 {
		head += "Authorization: " + r.keys[0] + "\r\n"
	}
	head += "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + string(body)
	return func(dst []byte, _ uint64) []byte { return append(dst, head...) }
}

func startNodeOf(from, file string) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		return b.startNode(ctx, from, func(port string) []string { return []string{file, port, b.origin} })
	}
}

func startHiveFederation(ctx context.Context, b *bench) (*running, error) {
	return b.startNode(ctx, "@graphql-hive/gateway", func(port string) []string {
		return []string{"node_modules/.bin/hive-gateway", "supergraph", "-c", "hive-federation.config.mjs", "-h", "127.0.0.1", "-p", port}
	})
}
