// Package helm has a chart for Kubernetes.
package helm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sluicegate/sluice/internal/config"
)

// content is what the secrets of the chart may hold, by their settings.
var content = map[string]string{
	"admin.former_master_key": strings.Repeat("0b", 32),
	"admin.master_key":        strings.Repeat("0a", 32),
	"database.url":            "postgres://db.example/sluice?sslmode=verify-full",
	"gateway.former_token":    "former-token-of-letters",
	"gateway.token":           "token-of-16-letters",
	"portal.email.password":   "password",
	"secret":                  "secret-of-16-letters",
	"telemetry.token":         "scraper",
	"valkey.url":              "rediss://:password@store.example:6379",
}

// manifest is what the test reads of an object.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []container
				Volumes    []volume
			}
		}
	}
}

type container struct {
	Name    string
	Args    []string
	Env     []struct{ Name, Value string }
	EnvFrom []struct {
		ConfigMapRef struct{ Name string } `yaml:"configMapRef"`
	} `yaml:"envFrom"`
}

type volume struct {
	Projected struct {
		Sources []struct {
			Secret struct {
				Items []struct{ Path string }
			}
		}
	}
}

// The settings of the objects that the chart renders are settings of the program.
func TestPodsHaveSettingsThatExist(t *testing.T) {
	dir := t.TempDir()
	for key, text := range content {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rendered, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for _, path := range rendered {
		if strings.HasSuffix(path, ".values.yaml") {
			continue
		}
		objects := read(t, path)
		for _, one := range objects {
			for _, c := range one.Spec.Template.Spec.Containers {
				role, known := map[string]config.Role{"admin": config.AdminRole, "gateway": config.GatewayRole, "migrate": config.MigrateRole}[c.Args[0]]
				if !known {
					t.Errorf("%s: %s runs %v", path, one.Metadata.Name, c.Args)
				}
				checked[c.Args[0]]++
				if _, _, err := config.Load(config.Sources{Env: environment(t, objects, one, c, dir), Role: role}); err != nil {
					t.Errorf("%s: %s: %v", path, one.Metadata.Name, err)
				}
			}
		}
	}
	if checked["admin"] != 3 || checked["gateway"] != 3 || checked["migrate"] != 2 {
		t.Errorf("commands of containers: %v", checked)
	}
}

// The files in testdata are what the chart renders now. Helm itself, which is in a module of its
// own, writes them.
func TestTheRenderedFilesAreOfThisChart(t *testing.T) {
	sources, err := filepath.Glob("templates/*")
	if err != nil {
		t.Fatal(err)
	}
	values, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, "Chart.yaml", "files/rules.yml", "files/secret-settings.txt", "values.yaml")
	sum := sha256.New()
	for _, path := range append(sources, values...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
	}
	kept, err := os.ReadFile("testdata/chart.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != strings.TrimSpace(string(kept)) {
		t.Error("the chart has changed: render it with go -C internal/deploy/tools test -run Chart . -update")
	}
}

// read returns the objects in a file.
func read(t *testing.T, path string) []manifest {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []manifest
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var one manifest
		if err := yaml.Unmarshal(part, &one); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		objects = append(objects, one)
	}
	return objects
}

// environment returns the variables of a container, with the files of secrets in dir.
func environment(t *testing.T, objects []manifest, workload manifest, c container, dir string) (env []string) {
	t.Helper()
	for _, from := range c.EnvFrom {
		i := slices.IndexFunc(objects, func(m manifest) bool { return m.Kind == "ConfigMap" && m.Metadata.Name == from.ConfigMapRef.Name })
		if i < 0 {
			t.Fatalf("%s: there is no ConfigMap %s", workload.Metadata.Name, from.ConfigMapRef.Name)
		}
		for name, value := range objects[i].Data {
			env = append(env, name+"="+value)
		}
	}
	var mounted []string
	for _, v := range workload.Spec.Template.Spec.Volumes {
		for _, source := range v.Projected.Sources {
			for _, item := range source.Secret.Items {
				mounted = append(mounted, item.Path)
			}
		}
	}
	for _, one := range c.Env {
		key, secret := strings.CutPrefix(one.Value, "/etc/sluice/secrets/")
		if !secret || !slices.Contains(mounted, key) {
			t.Errorf("%s: %s names the secret %s, which the pod does not get", workload.Metadata.Name, one.Name, one.Value)
		}
		env = append(env, one.Name+"="+filepath.Join(dir, key))
	}
	return env
}

// The chart has the alert rules that the repository has. Helm reads no file outside the chart.
func TestTheChartHasTheAlerts(t *testing.T) {
	const of = "../../../gateway/observe/dashboards/rules.yml"
	want, err := os.ReadFile(of)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("files/rules.yml"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("files/rules.yml is not %s (%v): copy that file over it", of, err)
	}
}

// The chart knows which settings are secrets.
func TestTheChartKnowsSecretSettings(t *testing.T) {
	reference, err := config.Reference()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, found := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|[^|]*\\| secret \\|").FindAllStringSubmatch(reference, -1) {
		want = append(want, found[1])
	}
	text, err := os.ReadFile("files/secret-settings.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(text)); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("files/secret-settings.txt has %v, and the secret settings are %v", got, want)
	}
}
