package system

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// TestABundleHoldsNoSecret plants secrets wherever the configuration takes one, and
// looks for them in what is given to others.
func TestABundleHoldsNoSecret(t *testing.T) {
	t.Parallel()
	const planted = "planted-"
	secrets := settings{"secret": planted + "control-secret", "gateway.token": planted + "gateway-token-00000000", "telemetry.token": planted + "scrape-token-000000"}
	s := rig.NewUp(t, rig.DataDir(t), secrets).StartReady()
	r := s.Rest()
	site := testenv.NewAuthority(t, "site").Server("site.example")
	r.Do(http.MethodPost, "/api/certs", object{"pem": site.CertPEM + site.KeyPEM})
	api := rig.APIDef("orders", "http://127.0.0.1:1/?key="+planted+"query", false)
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{"name": "Default", "global_headers": object{"X-Own": planted + "header"}}}}
	api["config_data"] = object{"some": planted + "config"}
	api["x-client-secret"] = planted + "unknown-member"
	r.Do(http.MethodPost, "/api/apis", api)
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "meta_data": object{"some": planted + "meta"}, "access_rights": rig.AccessTo("orders")})
	key := strings.TrimSpace(s.CLI("-q", "key", "create", "--policy", "gold", "--alias", planted+"alias").Wants(t, 0).Stdout)

	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	with := settings{"data_dir": s.Settings["data_dir"], "admin.listen": strings.TrimPrefix(s.Admin, "http://"), "gateway.listen": strings.TrimPrefix(s.Traffic, "http://")}
	maps.Copy(with, secrets)
	rig.Command(t, with, "doctor", "--bundle", file).Wants(t, 0, "look through them")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	files := unpack(t, file)
	for _, name := range []string{"findings.json", "machine.txt", "version.txt", "settings.yaml", "admin/apis.json", "admin/policies.json", "admin/gateways.json", "admin/certificates.json", "admin/revisions.json", "gateway/hello.json", "metrics.txt"} {
		if files[name] == "" {
			t.Errorf("lacks %s", name)
		}
	}
	if !strings.Contains(files["admin/apis.json"], `"orders"`) || !strings.Contains(files["admin/apis.json"], "127.0.0.1:1") {
		t.Errorf("what is no secret is gone too: %s", files["admin/apis.json"])
	}
	keyLine := strings.Split(site.KeyPEM, "\n")[1]
	for name, text := range files {
		for _, secret := range []string{planted, key, keyLine, s.ReadState("admin.key"), "PRIVATE KEY"} {
			if secret != "" && strings.Contains(text, strings.TrimSpace(secret)) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
	rig.Command(t, with, "doctor", "--bundle", filepath.Join(file, "below")).Wants(t, 1, "writing")
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files, archive := make(map[string]string), tar.NewReader(zipped)
	for {
		head, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(head.Name, "sluice-bundle/")] = string(text)
	}
}
