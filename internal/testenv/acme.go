package testenv

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// An ACME is an authority that speaks ACME: pebble, which validates every name at this
// machine.
type ACME struct {
	Directory string // URL
	CA        string // PEM file with the authority of the directory's certificate
}

// ACMEPorts are where an ACME listens, and where it validates names, as host and port.
type ACMEPorts struct{ Listen, Management, TLS, HTTP string }

// NewACME starts an authority, until t ends. tools is internal/tools, where pebble is built
// from.
func NewACME(t testing.TB, tools string, at ACMEPorts) *ACME {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "pebble")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/letsencrypt/pebble/v2/cmd/pebble")
	build.Dir = tools
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building pebble: %v\n%s", err, said)
	}
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority := NewAuthority(t, "of the directory")
	own := authority.Server("127.0.0.1")
	conf, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": at.Listen, "managementListenAddress": at.Management, "tlsPort": portOf(t, at.TLS), "httpPort": portOf(t, at.HTTP),
		"certificate": file("cert.pem", []byte(own.CertPEM)), "privateKey": file("key.pem", []byte(own.KeyPEM)),
		"retryAfter": map[string]int{"authz": 1, "order": 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(program, "-config", file("config.json", conf), "-dnsserver", resolver(t))
	server.SysProcAttr = ChildAttr(syscall.SIGKILL)
	server.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	said := new(Log)
	server.Stdout, server.Stderr = said, said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended by itself
		_ = server.Wait()
		if t.Failed() {
			t.Logf("pebble:\n%s", said)
		}
	})
	wait.Until(t, "pebble listens at "+at.Listen, func() bool {
		conn, err := net.Dial("tcp", at.Listen)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return &ACME{Directory: "https://" + at.Listen + "/dir", CA: file("ca.pem", []byte(authority.PEM()))}
}

func portOf(t testing.TB, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}

// resolver starts a server of names that has every name at 127.0.0.1, until t ends, and
// returns its address.
func resolver(t testing.TB) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for question := make([]byte, 4096); ; {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			var asked dnsmessage.Message
			if asked.Unpack(question[:n]) != nil || len(asked.Questions) != 1 {
				continue
			}
			q := asked.Questions[0]
			answer := dnsmessage.Message{Header: dnsmessage.Header{ID: asked.ID, Response: true, RecursionAvailable: true}, Questions: asked.Questions}
			if q.Type == dnsmessage.TypeA {
				answer.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			if packed, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}
