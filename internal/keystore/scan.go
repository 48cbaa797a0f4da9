package keystore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/valkey-io/valkey-go"
)

// List implements Store. A cursor is that of a node, "@" and the node's address.
func (v *Valkey) List(ctx context.Context, cursor string, count int) ([]string, string, error) {
	c, ctx, cancel, err := v.reach(ctx)
	if err != nil {
		return nil, "", err
	}
	defer cancel()
	nodes := c.Nodes()
	order := slices.Sorted(maps.Keys(nodes))
	at, from := 0, uint64(0)
	if cursor != "" {
		text, address, _ := strings.Cut(cursor, "@")
		from, err = strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, "", fmt.Errorf("cursor %q: use one that List returned", cursor)
		}
		if at = slices.Index(order, address); at < 0 {
			return nil, "", fmt.Errorf("%w: listing: node %s of cursor %q is gone: start again", ErrUnavailable, address, cursor)
		}
	}
	for ; at < len(order); at, from = at+1, 0 {
		found, next, err := v.scan(ctx, nodes[order[at]], from, count)
		switch {
		case err != nil:
			return nil, "", unavailable("listing", err)
		case next != 0:
			return found, strconv.FormatUint(next, 10) + "@" + order[at], nil
		case len(found) > 0 && at+1 < len(order):
			return found, "0@" + order[at+1], nil
		case len(found) > 0:
			return found, "", nil
		}
	}
	return nil, "", nil
}

// scan continues with a node from a cursor; 0 begins and, returned, ends. Replicas are
// skipped.
func (v *Valkey) scan(ctx context.Context, node valkey.Client, from uint64, count int) ([]string, uint64, error) {
	if v.options.Cluster {
		role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
		if err != nil {
			return nil, 0, err
		}
		if name, err := role[0].ToString(); err != nil || name != "master" {
			return nil, 0, err
		}
	}
	entry, err := node.Do(ctx, node.B().Scan().Cursor(from).Match(keyPrefix+"*").Count(int64(max(count, 1))).Build()).AsScanEntry()
	if err != nil {
		return nil, 0, err
	}
	hashes := make([]string, len(entry.Elements))
	for i, name := range entry.Elements {
		hashes[i] = v.hashOf(name)
	}
	return hashes, entry.Cursor, nil
}
