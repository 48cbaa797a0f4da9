package main

import "context"

// The sizes that cost per request must not depend on.
const (
	manyAPIs = 100_000
	manyKeys = 1_000_000
)

// measureScale compares gateways that have little loaded with such that have
// much.
func measureScale(ctx context.Context, b *bench) error {
	for _, pair := range []struct {
		title     string
		few, many contender
	}{
		{
			"APIs", contender{"Sluice, 1 API", startSluice(setup{apis: 1})},
			contender{"Sluice, 100,000 APIs", startSluice(setup{apis: manyAPIs})},
		},
		{
			"keys", contender{"Sluice, 1 key", startSluice(setup{keys: 1, apis: 1})},
			contender{"Sluice, 1,000,000 keys in turn", startSluice(setup{keys: manyKeys, apis: 1})},
		},
	} {
		started, err := b.startAll(ctx, []contender{pair.few, pair.many})
		if err != nil {
			return err
		}
		all, err := b.rotate(ctx, started)
		if err != nil {
			return err
		}
		b.printf("### CPU time per request with many %s loaded; the ratio is to few\n\n", pair.title)
		b.printCPU(all)
	}
	return nil
}
