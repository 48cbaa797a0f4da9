// Package internal holds the declarations of those bodies of the REST API that admin and
// gateways share. Files can be embedded only by a package that is above them.
package internal

import (
	"embed"

	"github.com/sluicegate/sluice/internal/definition/reference"
)

//go:embed certs/acme.go certs/delivery.go certs/info.go connections/connections.go connections/desk.go diff/diff.go graphql/change/broken.go graphql/change/change.go
//go:embed graphql/compose/problem.go graphql/rules/visible.go keystore/ledger.go streamstate/streamstate.go streamstate/trial.go
//go:embed usage/check.go usage/graphql.go usage/refusal.go usage/sample.go usage/usage.go
var bodies embed.FS

// Source is the declarations, whose comments describe the members of bodies.
func Source() reference.Source {
	return reference.Source{Package: "github.com/sluicegate/sluice/internal", Files: bodies}
}
