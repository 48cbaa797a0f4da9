package main

import "context"

// The sizes that cost per request must not depend on.
const (
	manyAPIs = 100_000
	manyKeys = 1_000_000
	someKeys = 1000
)

// measureScale compares gateways that have little loaded with such that have
// much. With many keys it tells apart what is there from what is asked for: to
// ask for a million in turn is to find none of them in the processor's caches.
func measureScale(ctx context.Context, b *bench) error {
	for _, group := range []struct {
		title string
		all   []contender
	}{
		{"APIs loaded; the ratio is to 1", []contender{
			{"Sluice, 1 API", startSluice(setup{apis: 1})},
			{"Sluice, 100,000 APIs", startSluice(setup{apis: manyAPIs})},
		}},
		{"keys loaded; the ratio is to 1,000 of 1,000", []contender{
			{"Sluice, 1,000 keys in turn of 1,000", startSluice(setup{keys: someKeys, apis: 1})},
			{"Sluice, 1,000 keys in turn of 1,000,000", startSluice(setup{keys: manyKeys, asked: someKeys, apis: 1})},
			{"Sluice, 1,000,000 keys in turn, each used before", startSluice(setup{keys: manyKeys, apis: 1})},
		}},
	} {
		started, err := b.startAll(ctx, group.all)
		if err != nil {
			return err
		}
		all, err := b.rotate(ctx, started)
		if err != nil {
			return err
		}
		b.printf("### CPU time per request with many %s\n\n", group.title)
		b.printCPU(all)
	}
	return nil
}
