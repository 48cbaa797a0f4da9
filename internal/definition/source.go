package definition

import (
	"embed"
	"io/fs"
)

// source is the declaration of the contract's structs.
//
//go:embed api.go basicauth.go bundle.go caching.go calendar.go cors.go datagraph.go events.go extendedpaths.go graphql.go keychanges.go persisted.go
//go:embed policy.go rewrite.go rotation.go session.go supergraph.go transform.go upstreams.go version.go jwt/jwt.go jwt/key.go
var source embed.FS

// Source returns the Go files that declare the contract's structs. The comments on their
// fields are the reference of definitions, see package reference.
func Source() fs.FS { return source }
