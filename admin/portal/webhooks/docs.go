package webhooks

import (
	"embed"
	"reflect"

	"github.com/sluicegate/sluice/internal/definition/reference"
)

//go:embed shape.go
var files embed.FS

// Source is the declaration of the bodies of calls, whose comments are their reference.
func Source() reference.Source {
	return reference.Source{Package: reflect.TypeFor[Webhook]().PkgPath(), Files: files}
}
