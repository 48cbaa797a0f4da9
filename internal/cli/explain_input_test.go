package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestMomentsAreReadAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	here := time.Date(2031, 2, 3, 4, 5, 0, 0, time.Local).UTC().Format(time.RFC3339)
	for text, want := range map[string]string{
		"": "", "+36h": "2030-01-03T15:04:05Z", "-15m": "2030-01-02T02:49:05Z",
		"2031-02-03T04:05:06+01:00": "2031-02-03T03:05:06Z", "2031-02-03 04:05": here, "2031-02-03 04:05:00": here,
	} {
		if got, err := momentOf(text, now); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"tomorrow", "+1", "-", "1700000000"} {
		if got, err := momentOf(text, now); err == nil || !strings.Contains(err.Error(), "want one such as") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
