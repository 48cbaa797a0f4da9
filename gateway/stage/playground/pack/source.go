package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// sourceHash returns the hash of what the script is built from, in the folder
// admin/ui/web: its sources, how they are built, and the versions of the packages that
// they use. A build of other sources than the committed ones is found by it.
func sourceHash(web fs.FS) (string, error) {
	const config, sources = "vite.playground.config.ts", "src/playground"
	files := []string{config}
	found, err := fs.ReadDir(web, sources)
	if err != nil {
		return "", fmt.Errorf("reading the sources of the playground: %w", err)
	}
	for _, f := range found {
		if name := f.Name(); strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".test.ts") {
			files = append(files, path.Join(sources, name))
		}
	}
	sum := sha256.New()
	for _, name := range files {
		text, err := fs.ReadFile(web, name)
		if err != nil {
			return "", fmt.Errorf("reading the sources of the playground: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(text))
		_, _ = sum.Write(text) // never fails
	}
	text, err := fs.ReadFile(web, "package.json")
	if err != nil {
		return "", fmt.Errorf("reading the sources of the playground: %w", err)
	}
	var packages struct{ Dependencies, DevDependencies map[string]string }
	if err := json.Unmarshal(text, &packages); err != nil {
		return "", fmt.Errorf("reading package.json: %w", err)
	}
	var used []string
	for name, version := range packages.Dependencies {
		if name == "graphql" || name == "cm6-graphql" || strings.HasPrefix(name, "@codemirror/") || strings.HasPrefix(name, "@lezer/") {
			used = append(used, name+" "+version)
		}
	}
	slices.Sort(used)
	_, _ = fmt.Fprintln(sum, used, packages.DevDependencies["vite"])
	return hex.EncodeToString(sum.Sum(nil)), nil
}
