package cli

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

// A running gateway with a certificate of a private authority is read with --from-ca.
func TestTheAuthorityOfARunningGatewayIsNamed(t *testing.T) {
	authority := testenv.NewAuthority(t, "private")
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `[]`
		if strings.HasSuffix(r.URL.Path, "/keys") {
			answer = `{"keys":[]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	old.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Server("127.0.0.1").TLS}}
	old.StartTLS()
	t.Cleanup(old.Close)
	ca := filepath.Join(t.TempDir(), "authority.crt")
	if err := os.WriteFile(ca, []byte(authority.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"--from " + old.URL + " --from-ca " + ca, "exit 0"},
		{"--from " + old.URL, "certificate signed by unknown authority"},
		{"--from " + old.URL + " --from-ca /nowhere.crt", "--from-ca: "},
		{"/nowhere --from-ca " + ca, "--from-ca is for --from URL"},
	} {
		if got := run("import --dry-run "+c.line, []string{"SLUICE_IMPORT_SECRET=secret"}, nil); !strings.Contains(got, c.want) {
			t.Errorf("want %q, got %s", c.want, got)
		}
	}
}
