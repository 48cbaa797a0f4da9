package e2e

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

	"github.com/sluicegate/sluice/internal/testenv"
)

// TestABundleHoldsNoSecret plants secrets wherever the configuration takes one, and
// looks for them in what is given to others.
func TestABundleHoldsNoSecret(t *testing.T) {
	t.Parallel()
	const planted = "planted-"
	secrets := settings{"secret": planted + "control-secret", "gateway.token": planted + "gateway-token-00000000", "telemetry.token": planted + "scrape-token-000000"}
	s := newUp(t, dataDir(t), secrets).startReady()
	r := s.rest()
	site := testenv.NewAuthority(t, "site").Server("site.example")
	r.do(http.MethodPost, "/api/certs", object{"pem": site.CertPEM + site.KeyPEM})
	api := apiDef("orders", "http://127.0.0.1:1/?key="+planted+"query", false)
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{"name": "Default", "global_headers": object{"X-Own": planted + "header"}}}}
	api["config_data"] = object{"some": planted + "config"}
	api["x-client-secret"] = planted + "unknown-member"
	r.do(http.MethodPost, "/api/apis", api)
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "meta_data": object{"some": planted + "meta"}, "access_rights": accessTo("orders")})
	key := strings.TrimSpace(s.own("-q", "key", "create", "--policy", "gold", "--alias", planted+"alias").wants(t, 0).stdout)

	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	with := settings{"data_dir": s.settings["data_dir"], "admin.listen": strings.TrimPrefix(s.admin, "http://"), "gateway.listen": strings.TrimPrefix(s.traffic, "http://")}
	maps.Copy(with, secrets)
	command(t, with, "doctor", "--bundle", file).wants(t, 0, "look through them")
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
		for _, secret := range []string{planted, key, keyLine, s.readState("admin.key"), "PRIVATE KEY"} {
			if secret != "" && strings.Contains(text, strings.TrimSpace(secret)) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
	command(t, with, "doctor", "--bundle", filepath.Join(file, "below")).wants(t, 1, "writing")
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
