// Package compose has a project for docker compose with all parts of an installation.
package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/testenv"
)

// The secrets that setup.sh makes are those of the project, and the settings of its services
// are settings of the program.
func TestServicesHaveSettingsThatExist(t *testing.T) {
	testenv.Program(t, "openssl")
	dir := t.TempDir()
	script, err := os.ReadFile("setup.sh")
	if err != nil {
		t.Fatal(err)
	}
	setup := filepath.Join(dir, "setup.sh")
	if err := os.WriteFile(setup, script, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(setup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Services map[string]struct {
			Command     any
			Environment map[string]string
			Secrets     []string
		}
		Secrets map[string]struct{ File string }
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		t.Fatal(err)
	}
	for name, one := range project.Secrets {
		if err := os.Symlink(filepath.Join(dir, one.File), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("secret %s: %v", name, err)
		}
	}
	for name, role := range map[string]config.Role{"admin": config.AdminRole, "gateway-1": config.GatewayRole, "gateway-2": config.GatewayRole} {
		service := project.Services[name]
		var env []string
		for key, value := range service.Environment {
			path, isSecret := strings.CutPrefix(value, "/run/secrets/")
			if isSecret {
				value = filepath.Join(dir, path)
				if !slices.Contains(service.Secrets, path) {
					t.Errorf("%s: %s names the secret %s, which the service does not get", name, key, path)
				}
			}
			env = append(env, key+"="+value)
		}
		if _, _, err := config.Load(config.Sources{Env: env, Role: role}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"admin", "valkey"} {
		c, err := certs.Pair{Cert: filepath.Join(dir, name)}.Read()
		if err != nil || !slices.Contains(c.Names(), name) {
			t.Errorf("the certificate of %s: %v", name, err)
		}
	}
}
