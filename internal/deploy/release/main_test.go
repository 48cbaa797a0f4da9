package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func build(settings ...string) *debug.BuildInfo {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.4", Main: debug.Module{Path: "github.com/sluicegate/sluice", Version: "v1.2.0"},
		Deps: []*debug.Module{{Path: "a.example/b", Version: "v0.1.0", Sum: "h1:x="}, {Path: "old.example/c", Version: "v1.0.0", Replace: &debug.Module{Path: "new.example/c", Version: "v1.0.1", Sum: "h1:y="}}},
	}
	for i := 0; i < len(settings); i += 2 {
		info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
	}
	return info
}

func TestABuildIsStampedWithItsCommit(t *testing.T) {
	const at = "2026-11-28T01:02:03Z"
	version, when, err := stampOf(build("vcs.time", at))
	if err != nil || version != "v1.2.0" || when.Format(time.RFC3339) != at {
		t.Errorf("%s %v %v", version, when, err)
	}
	for want, info := range map[string]*debug.BuildInfo{
		"changes that are not committed": build("vcs.time", at, "vcs.modified", "true"),
		"no commit":                      build(),
	} {
		if _, _, err := stampOf(info); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestABillHasAllModules(t *testing.T) {
	text, err := billOf(build(), "v1.2.0", time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	got := []string{b.Metadata.Component.PURL}
	for _, c := range b.Components {
		got = append(got, c.PURL)
	}
	if want := "pkg:golang/github.com/sluicegate/sluice@v1.2.0 pkg:golang/std@go1.26.4 pkg:golang/a.example/b@v0.1.0 pkg:golang/new.example/c@v1.0.1"; strings.Join(got, " ") != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

// What this machine knows of a file beside its content does not change the archive.
func TestArchivesAreReproducible(t *testing.T) {
	at := time.Date(2026, 11, 28, 1, 2, 3, 0, time.UTC)
	pack := func(mode os.FileMode, changed time.Time) []byte {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte("text"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
		text, err := archive([]entry{{"sluice", path, 0o755}}, "folder", at)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := pack(0o600, at)
	if !bytes.Equal(first, pack(0o644, at.Add(time.Hour))) {
		t.Error("two archives of one file differ")
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	packed := tar.NewReader(unzipped)
	head, err := packed.Next()
	if err != nil || head.Name != "folder/sluice" || head.Mode != 0o755 || !head.ModTime.Equal(at) {
		t.Errorf("%+v, %v", head, err)
	}
	if text, _ := io.ReadAll(packed); string(text) != "text" {
		t.Errorf("packed %q", text)
	}
}

// An archive for Linux has all files that belong to the units.
func TestArchivesForLinuxHaveTheUnits(t *testing.T) {
	t.Chdir("../../..")
	got := make(map[string]bool)
	for _, one := range entriesOf("program", "linux") {
		got[one.name] = true
	}
	files, err := os.ReadDir("internal/deploy/systemd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") && !got["systemd/"+file.Name()] {
			t.Errorf("%s is not in the archive", file.Name())
		}
	}
	if darwin := entriesOf("program", "darwin"); len(darwin) != 3 {
		t.Errorf("the archive for macOS has %v", darwin)
	}
}

// Files of another version would be published with this one.
func TestAFolderWithFilesIsRefused(t *testing.T) {
	r := release{out: filepath.Join(t.TempDir(), "dist")}
	if err := errors.Join(emptyFolder(r.out), r.write("old.tar.gz", nil)); err != nil {
		t.Fatal(err)
	}
	if err := r.make([]string{"linux/amd64"}); err == nil || !strings.Contains(err.Error(), "has files, such as old.tar.gz; remove them") {
		t.Errorf("got %v", err)
	}
}

// SHA256SUMS is what sha256sum checks.
func TestSums(t *testing.T) {
	r := release{out: t.TempDir()}
	if err := errors.Join(r.write("b", []byte("2")), r.write("a", []byte("1")), r.sums()); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("sha256sum", "-c", "SHA256SUMS")
	check.Dir = r.out
	if out, err := check.CombinedOutput(); err != nil || string(out) != "a: OK\nb: OK\n" {
		t.Errorf("%v: %s", err, out)
	}
}
