package definition

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
)

// source is the declaration of the contract's structs. The comments on their fields
// are the descriptions in the admin's OpenAPI document.
//
//go:embed api.go basicauth.go caching.go calendar.go cors.go datagraph.go events.go extendedpaths.go graphql.go persisted.go
//go:embed policy.go rewrite.go rotation.go session.go supergraph.go transform.go upstreams.go version.go jwt/jwt.go jwt/key.go
var source embed.FS

// Descriptions are the comments on the members of the contract's structs.
type Descriptions struct{ comments map[string]string }

// ReadDescriptions parses the comments.
func ReadDescriptions() (*Descriptions, error) {
	d := &Descriptions{make(map[string]string)}
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := source.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("reading the comments of %s: %w", name, err)
		}
		ast.Inspect(file, d.add)
		return nil
	})
	return d, err
}

// add takes in the comments of a struct.
func (d *Descriptions) add(n ast.Node) bool {
	spec, ok := n.(*ast.TypeSpec)
	if !ok {
		return true
	}
	if declared, ok := spec.Type.(*ast.StructType); ok {
		for _, field := range declared.Fields.List {
			for _, name := range field.Names {
				d.comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
	}
	return false
}

// Of returns the description of a field of a struct type, "" for types that are not
// of this contract.
func (d *Descriptions) Of(t reflect.Type, field string) string {
	if !strings.HasSuffix(t.PkgPath(), "/internal/definition") && !strings.HasSuffix(t.PkgPath(), "/internal/definition/jwt") {
		return ""
	}
	return d.comments[t.Name()+"."+field]
}
