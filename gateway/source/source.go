// Package source supplies the bundles that a gateway serves: from the admin or
// from files, with the last good one kept on disk.
package source

import (
	"context"

	"github.com/sluicegate/sluice/internal/definition"
)

// A Source supplies what a gateway should serve. It is used by one goroutine.
type Source interface {
	// Next blocks until there is a bundle of another revision than have, or any
	// bundle if have is "". It logs and retries its own failures; the error is that
	// of ctx.
	Next(ctx context.Context, have string) (*definition.Bundle, error)

	// Applied reports that a bundle is in force; failed holds, by API id, why
	// definitions of it are not served as written.
	Applied(b *definition.Bundle, failed map[string]error)
}
