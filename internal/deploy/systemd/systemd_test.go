// Package systemd has units of systemd, and what belongs to them.
package systemd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/testenv"
)

var (
	variable  = regexp.MustCompile(`(?m)^Environment=(SLUICE_\w+)=(.*)$`)
	execStart = regexp.MustCompile(`(?m)^ExecStart=/usr/bin/sluice (\w+) --config /etc/sluice/(\S+)$`)
)

// What the units set, and the files that they name, are settings of the program.
func TestUnitsHaveSettingsThatExist(t *testing.T) {
	secrets := map[string]string{
		"database_url": "postgres://db.example/sluice?sslmode=verify-full", "master_key": strings.Repeat("0a", 32),
		"gateway_token": "token-of-16-letters", "valkey_url": "rediss://:password@store.example:6379",
	}
	dir := t.TempDir()
	for name, text := range secrets {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for unit, role := range map[string]config.Role{"sluice-admin.service": config.AdminRole, "sluice-gateway.service": config.GatewayRole} {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		start := execStart.FindSubmatch(text)
		if start == nil {
			t.Fatalf("%s starts nothing that is known", unit)
		}
		var env []string
		for _, found := range variable.FindAllSubmatch(text, -1) {
			value := strings.NewReplacer("%d", dir, "%S", "/var/lib").Replace(string(found[2]))
			if name := strings.TrimPrefix(value, dir+"/"); name != value && !bytes.Contains(text, []byte("LoadCredential="+name+":/etc/sluice/secrets/"+name+"\n")) {
				t.Errorf("%s: the credential %s is not loaded", unit, name)
			}
			env = append(env, string(found[1])+"="+value)
		}
		if _, _, err := config.Load(config.Sources{Files: []string{string(start[2])}, Env: env, Role: role}); err != nil {
			t.Errorf("%s: %v", unit, err)
		}
	}
}

// systemd finds no fault with the units.
func TestUnitsAreVerified(t *testing.T) {
	analyze := testenv.Program(t, "systemd-analyze")
	for _, unit := range []string{"sluice-admin.service", "sluice-gateway.service"} {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), unit)
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("/usr/bin/sluice"), []byte("/bin/true")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}
