package gate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicegate/sluice/loadtest/rig"
)

// Certify gives the gateway an address for TLS, with a certificate of its own. It
// returns the configuration of clients that show no certificate, and of those that
// show the one in the file.
func (g *Gate) Certify() (plain, shown *tls.Config, file string, err error) {
	if g.Secure, err = rig.FreeAddress(); err != nil {
		return nil, nil, "", err
	}
	server, serverFile, err := g.certificate("gateway")
	if err != nil {
		return nil, nil, "", fmt.Errorf("making the certificate of a gateway: %w", err)
	}
	client, file, err := g.certificate("client")
	if err != nil {
		return nil, nil, "", fmt.Errorf("making the certificate of a client: %w", err)
	}
	g.lines = append(g.lines, "tls:", "  listen: "+g.Secure, "  cert: "+serverFile+".crt", "  key: "+serverFile+".key")
	roots := x509.NewCertPool()
	roots.AddCert(server.Leaf)
	plain = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	shown = plain.Clone()
	shown.Certificates = []tls.Certificate{client}
	return plain, shown, file + ".crt", nil
}

// certificate makes one that is its own authority, for a day, and writes it and
// its key to a file each: those of the path that it returns, with .crt and .key.
func (g *Gate) certificate(name string) (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	file := filepath.Join(g.dir, name)
	for suffix, text := range map[string][]byte{".crt": chain, ".key": secret} {
		if err := os.WriteFile(file+suffix, text, 0o600); err != nil {
			return tls.Certificate{}, "", err
		}
	}
	pair, err := tls.X509KeyPair(chain, secret)
	return pair, file, err
}
