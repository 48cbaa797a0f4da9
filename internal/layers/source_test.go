package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sluicegate/sluice"

// A folder is one package of the module, without its tests. Its path is the one
// below the module, "." for the root.
type folder struct {
	path  string
	fset  *token.FileSet
	files []*ast.File
}

// module's root, as seen from this package's directory.
const root = "../.."

// source reads every package of the module.
func source(t *testing.T) []folder {
	t.Helper()
	var folders []folder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if path != root && skipped(path, entry.Name()) {
			return fs.SkipDir
		}
		f, err := read(path)
		if len(f.files) > 0 {
			folders = append(folders, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) < 10 {
		t.Fatalf("found only %d packages below %s", len(folders), root)
	}
	return folders
}

func skipped(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	otherModule := err == nil && path != filepath.Join(root, "loadtest") // whose code follows the same rules
	return otherModule || name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func read(dir string) (folder, error) {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return folder{}, err
	}
	f := folder{path: filepath.ToSlash(rel), fset: token.NewFileSet()}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return f, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(f.fset, name, nil, parser.ParseComments)
		if err != nil {
			return f, err
		}
		f.files = append(f.files, file)
	}
	return f, nil
}

// parsed makes a folder of source texts, for the tests of the rules themselves.
func parsed(t *testing.T, path string, texts ...string) folder {
	t.Helper()
	f := folder{path: path, fset: token.NewFileSet()}
	for i, text := range texts {
		file, err := parser.ParseFile(f.fset, "f"+strconv.Itoa(i)+".go", text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		f.files = append(f.files, file)
	}
	return f
}

func (f folder) imports() []string {
	var paths []string
	for _, file := range f.files {
		for _, spec := range file.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
