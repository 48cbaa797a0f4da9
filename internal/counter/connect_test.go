package counter_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
)

// certificate writes a self-signed certificate for 127.0.0.1 and its key, and
// returns their files and who trusts it.
func certificate(t *testing.T) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: packed},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust = x509.NewCertPool()
	trust.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	return cert, key, trust
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestConnectsOverTLSAndUnixSocketsWithCredentials(t *testing.T) {
	cert, key, trust := certificate(t)
	secure, socket := freeAddress(t), filepath.Join(t.TempDir(), "s")
	_, port, err := net.SplitHostPort(secure)
	if err != nil {
		t.Fatal(err)
	}
	store := testenv.Valkey(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "no", "--unixsocket", socket)
	store.Do("ACL", "SETUSER", "gate", "on", ">word", "~*", "&*", "+@all")
	store.Do("CONFIG", "SET", "requirepass", "secret")
	for name, o := range map[string]counter.ValkeyOptions{
		"TLS, user":             {Addresses: []string{secure}, Username: "gate", Password: "word", TLS: &tls.Config{RootCAs: trust}},
		"unix socket, password": {Addresses: []string{"unix:" + socket}, Password: "secret"},
	} {
		o.Outage = counter.Closed
		g := gatewayAt(t, o)
		want(t, name+": away", g.State().Away, false)
		want(t, name+": admitted", g.admitted(t, 5, g.quota(name, 3, time.Minute)), int64(3))
	}
	distrusting := gatewayAt(t, counter.ValkeyOptions{Addresses: []string{secure}, Password: "secret", TLS: &tls.Config{}, Outage: counter.Closed})
	want(t, "an unknown certificate: away", distrusting.State().Away, true)
	t.Log(distrusting.State().Cause)
}

func TestVersionsThatLackWhatTheScriptsNeedAreRefused(t *testing.T) {
	for version, fit := range map[string]bool{
		"redis 6.2.14": false, "redis 7.0.0": true, "redis 7.2.4": true, "redis 8.0": true, "valkey 7.2.5": true, "valkey 9.1.0": true,
		"valkey 7.1.0": false, "redis": false, "redis x.y": false,
	} {
		t.Run(version, func(t *testing.T) {
			store := fakeStore(t, version)
			v, err := counter.OpenValkey(t.Context(), counter.ValkeyOptions{Addresses: []string{store}, Timeout: patience})
			if err == nil {
				v.Close()
			}
			want(t, "accepted", err == nil, fit)
		})
	}
}

// fakeStore answers INFO with a version that is not installed here, and OK to
// everything else.
func fakeStore(t *testing.T, version string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerAs(conn, version)
		}
	}()
	return l.Addr().String()
}

func answerAs(conn net.Conn, version string) {
	defer conn.Close()
	name, number, _ := strings.Cut(version, " ")
	info := "redis_mode:standalone\r\nredis_version:" + number + "\r\n"
	if name == "valkey" { // it tells both
		info = "redis_mode:standalone\r\nredis_version:7.2.4\r\nvalkey_version:" + number + "\r\n"
	}
	read := newCommands(conn)
	for {
		command, err := read()
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		switch command {
		case "HELLO":
			answer = "%1\r\n+proto\r\n:3\r\n"
		case "INFO":
			answer = "$" + strconv.Itoa(len(info)) + "\r\n" + info + "\r\n"
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// newCommands returns what reads the next command's first word.
func newCommands(conn net.Conn) func() (string, error) {
	r := bufio.NewReader(conn)
	line := func() (string, error) {
		s, err := r.ReadString('\n')
		return strings.TrimRight(s, "\r\n"), err
	}
	return func() (string, error) {
		head, err := line()
		if err != nil {
			return "", err
		}
		words, err := strconv.Atoi(strings.TrimPrefix(head, "*"))
		if err != nil {
			return "", err
		}
		first := ""
		for i := range words {
			if _, err := line(); err != nil { // its length: no word here holds a line break
				return "", err
			}
			word, err := line()
			if err != nil {
				return "", err
			}
			if i == 0 {
				first = strings.ToUpper(word)
			}
		}
		return first, nil
	}
}
