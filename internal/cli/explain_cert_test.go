package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

func TestACertificateIsSentWithoutItsPrivateKey(t *testing.T) {
	dir, client := t.TempDir(), testenv.NewAuthority(t, "a").Client("me")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shown, err := readCertificate(write("me.pem", client.KeyPEM+client.CertPEM))
	if err != nil || shown != client.CertPEM {
		t.Errorf("%v, sends %s", err, shown)
	}
	for name, want := range map[string]string{
		write("key.pem", client.KeyPEM):   "holds no certificate in PEM form",
		filepath.Join(dir, "missing.pem"): "no such file",
	} {
		if shown, err := readCertificate(name); err == nil || !strings.Contains(err.Error(), want) || shown != "" {
			t.Errorf("%s: %q, %v", name, shown, err)
		}
	}
}
