// Package compose has a project for docker compose with all parts of an installation.
package compose

import (
	"net/netip"
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

// A service is what the tests read of one.
type service struct {
	Environment map[string]string
	Secrets     []string
	Volumes     []string
	Networks    map[string]struct {
		Address netip.Addr `yaml:"ipv4_address"`
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

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

	var project struct {
		Services map[string]service
		Secrets  map[string]struct{ File string }
	}
	read(t, "compose.yaml", &project)
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

// Gateways believe nginx, whose address no other service can get.
func TestGatewaysTrustNginxAlone(t *testing.T) {
	var project struct {
		Services map[string]service
		Networks struct {
			Default struct {
				IPAM struct {
					Config []struct {
						Subnet, Gateway string
						Range           netip.Prefix `yaml:"ip_range"`
					}
				}
			}
		}
	}
	read(t, "compose.yaml", &project)
	nginx := project.Services["nginx"].Networks["default"].Address
	pool := project.Networks.Default.IPAM.Config[0]
	subnet := netip.MustParsePrefix(pool.Subnet)
	if !subnet.Contains(nginx) || pool.Gateway == nginx.String() || pool.Range.Bits() <= subnet.Bits() || !subnet.Contains(pool.Range.Addr()) || pool.Range.Contains(nginx) {
		t.Errorf("the network %+v can give the address of nginx, %s, to another service, or not to nginx", pool, nginx)
	}
	for _, name := range []string{"gateway-1", "gateway-2"} {
		if got := project.Services[name].Environment["SLUICE_GATEWAY_TRUSTED_PROXIES"]; got != nginx.String()+"/32" {
			t.Errorf("%s trusts %s, want %s/32", name, got, nginx)
		}
	}
}

// Grafana gets the dashboard in the folder that its provider reads, and a default data source
// of the kind that the dashboard asks for.
func TestGrafanaHasTheDashboard(t *testing.T) {
	var project struct{ Services map[string]service }
	read(t, "compose.yaml", &project)
	mounted := make(map[string]string) // path in the container to that here
	for _, volume := range project.Services["grafana"].Volumes {
		if parts := strings.Split(volume, ":"); strings.HasPrefix(volume, ".") && len(parts) == 3 && parts[2] == "ro" {
			mounted[parts[1]] = parts[0]
		}
	}
	var sources struct {
		Datasources []struct {
			Type, URL string
			IsDefault bool `yaml:"isDefault"`
		}
	}
	read(t, mounted["/etc/grafana/provisioning/datasources/sluice.yaml"], &sources)
	if len(sources.Datasources) != 1 || !sources.Datasources[0].IsDefault || sources.Datasources[0].URL != "http://prometheus:9090" {
		t.Fatalf("the data sources are %+v", sources)
	}
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read(t, mounted["/etc/grafana/provisioning/dashboards/sluice.yaml"], &dashboards)
	if len(dashboards.Providers) != 1 {
		t.Fatalf("the providers are %+v", dashboards)
	}
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	read(t, mounted[dashboards.Providers[0].Options.Path+"/sluice.json"], &dashboard)
	if asked := dashboard.Templating.List[0]; asked.Type != "datasource" || asked.Query != sources.Datasources[0].Type {
		t.Errorf("the dashboard asks for %+v, and the data source is %+v", asked, sources.Datasources[0])
	}
}
