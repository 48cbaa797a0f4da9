package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// pack packs a stand-in for the program; mode and changed are those of its file.
func pack(t *testing.T, mode os.FileMode, changed time.Time) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho stand-in\n"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(program, changed, changed); err != nil {
		t.Fatal(err)
	}
	path, err := deb(program, t.TempDir(), "v1.2.0-rc.1", "amd64", time.Date(2026, 11, 28, 1, 2, 4, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, args, err, out)
	}
	return string(out)
}

// The package is what dpkg reads: the program, its units and settings, with fixed owners,
// modes and times. It is installed into an empty folder, removed and purged, with its scripts.
func TestThePackageForDebian(t *testing.T) {
	testenv.Program(t, "dpkg")
	testenv.Program(t, "systemd-sysusers")
	t.Chdir("../../..")
	path := pack(t, 0o600, time.Unix(0, 0))
	if again := pack(t, 0o755, time.Unix(1e9, 0)); filepath.Base(path) != "sluice_1.2.0-rc.1_amd64.deb" || !equal(t, path, again) {
		t.Errorf("two packages of one program differ, or have a wrong name: %s", path)
	}
	wantFields(t, path)
	wantFiles(t, path)

	root := t.TempDir()
	for _, name := range []string{"status", "available"} {
		file := filepath.Join(root, "var/lib/dpkg", name)
		if err := os.MkdirAll(filepath.Dir(file)+"/info", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(file)+"/updates", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dpkg := func(args ...string) string {
		return run(t, "dpkg", append([]string{"--root=" + root, "--log=/dev/null", "--force-not-root", "--force-depends", "--force-script-chrootless"}, args...)...)
	}
	if out := dpkg("--install", path); !strings.Contains(out, "openssl rand -hex 32 > master_key") {
		t.Errorf("the installation does not say what is left to do: %s", out)
	}
	if users, err := os.ReadFile(root + "/etc/passwd"); err != nil || !strings.HasPrefix(string(users), "sluice:") {
		t.Errorf("the user: %v %s", err, users)
	}
	settings := root + "/etc/sluice/gateway.yaml"
	if err := os.WriteFile(settings, []byte("gateway: {listen: :80}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/etc/sluice/secrets/master_key", []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := dpkg("--install", path); !strings.Contains(out, "systemctl try-restart") {
		t.Errorf("the second installation does not say that units keep their program: %s", out)
	}
	if text, err := os.ReadFile(settings); string(text) != "gateway: {listen: :80}\n" {
		t.Errorf("settings were replaced: %v %s", err, text)
	}
	dpkg("--remove", "sluice")
	wantThere(t, root, map[string]bool{"usr/bin/sluice": false, "etc/sluice/gateway.yaml": true})
	if out := dpkg("--purge", "sluice"); !strings.Contains(out, "secrets stays") {
		t.Errorf("the purge does not say that secrets stay: %s", out)
	}
	wantThere(t, root, map[string]bool{"etc/sluice/gateway.yaml": false, "etc/logrotate.d/sluice": false, "etc/sluice/secrets/master_key": true})
}

func equal(t *testing.T, a, b string) bool {
	t.Helper()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(first, second)
}

func wantFields(t *testing.T, path string) {
	t.Helper()
	for field, want := range map[string]string{"Package": "sluice", "Version": "1.2.0~rc.1", "Architecture": "amd64", "Depends": "systemd"} {
		if got := strings.TrimSpace(run(t, "dpkg-deb", "--field", path, field)); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if got := strings.Fields(run(t, "dpkg-deb", "--info", path, "conffiles")); strings.Join(got, " ") != "/etc/logrotate.d/sluice /etc/sluice/admin.yaml /etc/sluice/gateway.yaml" {
		t.Errorf("conffiles are %s", got)
	}
}

func wantFiles(t *testing.T, path string) {
	t.Helper()
	want := map[string]string{
		"./usr/bin/sluice": "-rwxr-xr-x", "./usr/share/doc/sluice/copyright": "-rw-r--r--",
		"./usr/lib/systemd/system/sluice-admin.service": "-rw-r--r--", "./usr/lib/systemd/system/sluice-gateway.service": "-rw-r--r--",
		"./usr/lib/sysusers.d/sluice.conf": "-rw-r--r--", "./usr/lib/sysctl.d/60-sluice.conf": "-rw-r--r--",
		"./etc/logrotate.d/sluice": "-rw-r--r--", "./etc/sluice/admin.yaml": "-rw-r--r--", "./etc/sluice/gateway.yaml": "-rw-r--r--",
		"./etc/sluice/secrets/": "drwx------",
	}
	for line := range strings.Lines(run(t, "dpkg-deb", "--contents", path)) {
		fields := strings.Fields(line)
		mode, owner, name := fields[0], fields[1], fields[len(fields)-1]
		if owner != "root/root" || !strings.Contains(line, "2026-11-28") {
			t.Errorf("an owner or a time of this machine: %s", line)
		}
		if wanted, known := want[name]; known && wanted != mode || !known && mode != "drwxr-xr-x" {
			t.Errorf("unexpected: %s", line)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func wantThere(t *testing.T, root string, files map[string]bool) {
	t.Helper()
	for name, want := range files {
		if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
}
