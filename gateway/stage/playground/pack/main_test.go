package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheScriptIsOfTheCommittedSources compares hashes, for which no Node is needed.
func TestTheScriptIsOfTheCommittedSources(t *testing.T) {
	want, err := sourceHash(os.DirFS(filepath.Join("..", "..", "..", "..", "admin", "ui", "web")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "SOURCE_HASH"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(got)) != want {
		t.Error("playground.js.gz is of other sources than those in admin/ui/web/src/playground: run go generate ./gateway/stage/playground")
	}
}
