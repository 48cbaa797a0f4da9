// Package reference is the reference of JSON objects: what each member means, which values
// it may have, its default and an example. All of it is read from the Go types, from the
// comments and tags of their fields:
//
//	// Seconds between two checks, from 0.1 to 3600. Default: 10.
//	// Example: 5
//	Interval float64 `json:"interval,omitempty"`
//
// The comment is the description. Of it are read: the default behind "Default:", or the
// word in front of "(default)"; bounds, "from 1 to 5", "at most 5", "at least 5" or "above 0
// and up to 5", which are of the value of a number, of the bytes of a text and of the number
// of entries; and the unit, from words such as seconds. The line Example is JSON; members
// that are true or false need none. A line "Since: 1.2" names the version that brought the
// member, where that is not the first one. The tag oneof has the values allowed.
package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"strings"
)

// A Source is the Go files of a package.
type Source struct {
	Package string // path of the package
	Files   fs.FS  // those in folders are of the packages below it
}

// Comments are the comments on the fields of structs.
type Comments struct {
	fields map[string]comment // by package, struct and field
}

// A comment is the comment on a field.
type comment struct {
	text    string // the description: one line
	example string
	since   string
}

// ReadComments parses the comments of sources.
func ReadComments(sources ...Source) (*Comments, error) {
	c := &Comments{make(map[string]comment)}
	for _, s := range sources {
		err := fs.WalkDir(s.Files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return c.read(s, name)
		})
		if err != nil {
			return nil, fmt.Errorf("reading the comments of %s: %w", s.Package, err)
		}
	}
	return c, nil
}

func (c *Comments) read(s Source, name string) error {
	text, err := fs.ReadFile(s.Files, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	of := path.Join(s.Package, path.Dir(name))
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if ok {
			c.add(of+"."+spec.Name.Name, spec)
		}
		return !ok
	})
	return nil
}

// add takes in the comments of a struct.
func (c *Comments) add(of string, spec *ast.TypeSpec) {
	declared, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range declared.Fields.List {
		for _, name := range field.Names {
			c.fields[of+"."+name.Name] = split(field.Doc.Text())
		}
	}
}

// split takes the lines with a label out of a comment.
func split(text string) (c comment) {
	var rest []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if value, ok := strings.CutPrefix(line, "Example: "); ok {
			c.example = value
		} else if value, ok := strings.CutPrefix(line, "Since: "); ok {
			c.since = value
		} else if line != "" {
			rest = append(rest, line)
		}
	}
	c.text = strings.Join(rest, " ")
	return c
}

func (c *Comments) of(t reflect.Type, field string) comment {
	return c.fields[t.PkgPath()+"."+t.Name()+"."+field]
}
