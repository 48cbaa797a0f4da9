package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeNpm puts an npm first on the PATH that notes in runs, below its directory,
// that it ran, and makes node_modules as the real one would.
func fakeNpm(t *testing.T, script string) (dir string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	dir = t.TempDir()
	writeLock(t, dir, "one")
	return dir
}

func writeLock(t *testing.T, dir, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func runs(t *testing.T, dir string) int {
	t.Helper()
	noted, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(noted), "ci")
}

func TestPackagesAreInstalledOnceForEachLockFile(t *testing.T) {
	dir := fakeNpm(t, `echo "$1" >> runs && mkdir -p node_modules`)
	for _, lock := range []string{"one", "two"} {
		writeLock(t, dir, lock)
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				if err := install(dir); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
	}
	if n := runs(t, dir); n != 2 {
		t.Errorf("npm ran %d times for two lock files", n)
	}
}

func TestAnInstallationThatFailsSaysWhyAndIsTriedAgain(t *testing.T) {
	dir := fakeNpm(t, `echo "$1" >> runs; mkdir -p node_modules; echo no route >&2; exit 1`)
	for range 2 {
		if err := install(dir); err == nil || !strings.Contains(err.Error(), "no route") {
			t.Errorf("got %v", err)
		}
	}
	if n := runs(t, dir); n != 2 {
		t.Errorf("npm ran %d times", n)
	}
}

func TestDataIsLookedForWhereTheEnvironmentSays(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SLUICE_TEST_DATA", dir)
	if _, ok := Data(t, "schemas/star.graphql"); ok {
		t.Error("found what is not there")
	}
	if err := os.MkdirAll(filepath.Join(dir, "schemas"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "schemas", "star.graphql"), []byte("type Star"), 0o644); err != nil {
		t.Fatal(err)
	}
	if content, ok := Data(t, "schemas/star.graphql"); !ok || string(content) != "type Star" {
		t.Errorf("got %q, %v", content, ok)
	}
}
