package layers

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maps are the documents whose names must exist.
var maps = []string{"ARCHITECTURE.md", ".github/CONTRIBUTING.md"}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// A file or package by its path, "gateway/wire" or "gateway/serve.go".
	pathName = regexp.MustCompile(`^\.?[a-zA-Z0-9_]+(/[a-zA-Z0-9_.-]+)+/?$|^[a-z_]+\.(go|md|txt|sql)$|^Makefile$`)
	// Something that a package declares: "wire.Server" or "wire.Server.Serve".
	symbolName = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Za-z_]\w*)(\.([A-Za-z_]\w*))?(\(\))?$`)
)

// TestTheMapNamesWhatExists holds every path and every Go name that the documents
// quote against the source text, so that a rename cannot leave them behind.
func TestTheMapNamesWhatExists(t *testing.T) {
	declared := declarations(t)
	for _, name := range maps {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			if known, applies := exists(declared, m[1]); applies {
				checked++
				if !known {
					t.Errorf("%s names `%s`, which does not exist", name, m[1])
				}
			}
		}
		if checked == 0 {
			t.Errorf("%s names no file, package or Go name", name)
		}
	}
}

// exists reports whether a quoted text names something that exists. It does not
// apply to texts that are neither a path nor a name in a package of ours.
func exists(declared map[string]map[string]bool, text string) (known, applies bool) {
	if m := symbolName.FindStringSubmatch(text); m != nil && declared[m[1]] != nil {
		name := m[2]
		if m[4] != "" {
			name += "." + m[4]
		}
		return declared[m[1]][name], true
	}
	if !pathName.MatchString(text) || strings.Contains(text, "…") {
		return false, false
	}
	if first, _, ok := strings.Cut(text, "/"); ok && strings.Contains(first, ".") && !strings.HasPrefix(first, ".") {
		return false, false // the path of another module
	}
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(text)))
	return err == nil, true
}

// declarations returns, by the last element of each package's path, the names that
// it declares: "T", "f", and "T.m" for methods and fields of T.
func declarations(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := make(map[string]map[string]bool)
	for _, f := range source(t) {
		name := path.Base(f.path)
		if all[name] == nil {
			all[name] = make(map[string]bool)
		}
		f.eachDecl(func(decl ast.Decl) { declare(all[name], decl) })
	}
	return all
}

func declare(names map[string]bool, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		names[declared(d)] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				declareMembers(names, s)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names[id.Name] = true
				}
			}
		}
	}
}

func declareMembers(names map[string]bool, s *ast.TypeSpec) {
	var members *ast.FieldList
	switch kind := s.Type.(type) {
	case *ast.StructType:
		members = kind.Fields
	case *ast.InterfaceType:
		members = kind.Methods
	default:
		return
	}
	for _, member := range members.List {
		for _, id := range member.Names {
			names[s.Name.Name+"."+id.Name] = true
		}
	}
}

func TestNamesThatDoNotExistAreFound(t *testing.T) {
	declared := map[string]map[string]bool{"wire": {"Server": true, "Server.Serve": true}}
	for text, want := range map[string][2]bool{
		"wire.Server":         {true, true},
		"wire.Server.Serve()": {true, true},
		"wire.Client":         {false, true},
		"http.Server":         {false, false},
		"internal/layers":     {true, true},
		"internal/nowhere":    {false, true},
		"make test":           {false, false},
		"X-Request-Id":        {false, false},
		"golang.org/x/net":    {false, false},
	} {
		if known, applies := exists(declared, text); [2]bool{known, applies} != want {
			t.Errorf("%q: exists %v, applies %v; want %v", text, known, applies, want)
		}
	}
}
