// Package source supplies the bundles that a gateway serves: from the admin or
// from files, with the last good one kept on disk.
package source

import (
	"context"

	"github.com/sluicegate/sluice/internal/definition"
)

// A Source supplies what a gateway should serve. It is used by one goroutine.
type Source interface {
	// Next blocks until there is a bundle of another revision than have; ""
	// takes the first there is. It retries its own troubles, reporting them;
	// it fails only when ctx ends.
	Next(ctx context.Context, have string) (*definition.Bundle, error)

	// Applied tells the source what became of a bundle: failed holds, by API
	// id, why a definition of it is not served as written.
	Applied(b *definition.Bundle, failed map[string]error)
}
