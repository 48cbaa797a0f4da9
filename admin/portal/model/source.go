package model

import (
	"embed"
	"reflect"

	"github.com/sluicegate/sluice/internal/definition/reference"
)

//go:embed model.go
var files embed.FS

// Source is the declaration of the objects, whose comments are their reference.
func Source() reference.Source {
	return reference.Source{Package: reflect.TypeFor[Developer]().PkgPath(), Files: files}
}
