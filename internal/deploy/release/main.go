// Command release builds what is published of a version into a folder: for each platform an
// archive with the program, its licence and README, for Linux with the units of systemd and
// their settings, and a list of the modules in it (CycloneDX); for Linux a package for Debian;
// and SHA256SUMS of all files. The same commit gives the same bytes.
//
// The folder must be empty, so that SHA256SUMS lists all that is in it.
//
//	release [-version v1.2.0] [-out dist] [-platforms linux/amd64,linux/arm64,darwin/arm64]
//
// The version is the one that the go command stamps: that of the tag of the commit, else one
// with its time and hash.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "`VERSION` that the commit must have; default: any")
	flag.StringVar(&r.out, "out", "dist", "`FOLDER` to write to")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/arm64", "`LIST` of operating system/architecture")
	flag.Parse()
	if err := r.make(strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type release struct {
	version string
	out     string
	files   []string // names that were written
}

func (r *release) make(platforms []string) error {
	if err := emptyFolder(r.out); err != nil {
		return err
	}
	for i, platform := range platforms {
		system, architecture, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("%q is no platform; want such as linux/amd64", platform)
		}
		fmt.Printf("%d of %d: %s\n", i+1, len(platforms), platform)
		if err := r.platform(system, architecture); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return r.sums()
}

// emptyFolder makes a folder, and refuses one that has files: SHA256SUMS would not list them.
func emptyFolder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(path)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("the folder %s has files, such as %s; remove them, or name another folder with -out", path, files[0].Name())
	}
	return err
}

// platform builds the program for one platform and writes its files.
func (r *release) platform(system, architecture string) error {
	dir, err := os.MkdirTemp("", "sluice-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	version, at, err := stampOf(info)
	if err != nil {
		return err
	}
	if r.version != "" && r.version != version {
		return fmt.Errorf("the commit has the version %s, and not %s; tag it first, in a tree without changes", version, r.version)
	}
	name := fmt.Sprintf("sluice_%s_%s_%s", version, system, architecture)
	list, err := billOf(info, version, at)
	if err != nil {
		return err
	}
	text, err := archive(entriesOf(program, system), name, at)
	if err != nil {
		return err
	}
	if err := errors.Join(r.write(name+".cdx.json", list), r.write(name+".tar.gz", text)); err != nil || system != "linux" {
		return err
	}
	path, err := deb(program, r.out, version, architecture, at)
	r.files = append(r.files, filepath.Base(path))
	return err
}

// stampOf returns the version of a build and the time of its commit. Changes that are not
// committed are refused: they could not be built again.
func stampOf(info *debug.BuildInfo) (version string, at time.Time, err error) {
	settings := make(map[string]string)
	for _, one := range info.Settings {
		settings[one.Key] = one.Value
	}
	if settings["vcs.modified"] == "true" {
		return "", at, fmt.Errorf("the tree has changes that are not committed")
	}
	if at, err = time.Parse(time.RFC3339, settings["vcs.time"]); err != nil {
		return "", at, fmt.Errorf("the build has no commit: %w", err)
	}
	return info.Main.Version, at.UTC(), nil
}

func (r *release) write(name string, text []byte) error {
	r.files = append(r.files, name)
	return os.WriteFile(filepath.Join(r.out, name), text, 0o644)
}

// sums writes SHA256SUMS, as sha256sum -c reads it.
func (r *release) sums() error {
	slices.Sort(r.files)
	var b strings.Builder
	for _, name := range r.files {
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		fmt.Fprintf(&b, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	fmt.Print(b.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
