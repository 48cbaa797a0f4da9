package ui

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// SourceHash returns the SHA-256 over the files that the UI is built from, in the
// directory admin/ui/web. The zip holds it, so that a test can say that the UI has to be
// built again.
func SourceHash(web fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(web, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name == "node_modules" || name == "dist" {
				return fs.SkipDir
			}
			return nil
		case !isSource(name):
			return nil
		}
		content, err := fs.ReadFile(web, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the sources of the UI: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// isSource reports whether the build depends on a file.
func isSource(name string) bool {
	if strings.Contains(name, ".test.") {
		return false
	}
	if strings.HasPrefix(name, "src/") || strings.HasPrefix(name, "public/") {
		return true
	}
	switch path.Ext(name) {
	case ".json", ".ts", ".html":
		return !strings.Contains(name, "/")
	}
	return false
}

var pathLists = regexp.MustCompile(`paths: \[([^\]]*)\]`)

var quoted = regexp.MustCompile(`'([^']*)'`)

// Routes returns the paths of the pages that src/pages/index.ts lists.
func Routes(index string) ([]string, error) {
	var routes []string
	for _, list := range pathLists.FindAllStringSubmatch(index, -1) {
		for _, one := range quoted.FindAllStringSubmatch(list[1], -1) {
			switch {
			case !strings.HasPrefix(one[1], "/"):
				return nil, fmt.Errorf("the path %q of a page does not begin with a slash", one[1])
			case reserved(one[1]):
				return nil, fmt.Errorf("the path %q of a page belongs to the server", one[1])
			}
			routes = append(routes, one[1])
		}
	}
	if len(routes) == 0 {
		return nil, fmt.Errorf("no page is listed")
	}
	return routes, nil
}
