package testenv

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// An Authority signs the certificates of a test.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  crypto.Signer
}

// An Identity is a certificate with its key.
type Identity struct {
	TLS     tls.Certificate
	Leaf    *x509.Certificate
	CertPEM string // with the chain
	KeyPEM  string
}

// NewAuthority returns a new self-signed authority.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	a.cert = sign(t, template, template, a.key.Public(), a.key)
	return a
}

// Pool returns a pool with this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() string { return certPEM(a.cert.Raw) }

// Certificate returns the authority's certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Server issues a certificate for servers of these names, which may be addresses.
func (a *Authority) Server(names ...string) *Identity {
	a.t.Helper()
	return a.issue(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, names...)
}

// ServerUntil issues a certificate for servers that is valid from a day before
// the end to the end, which may lie in the past.
func (a *Authority) ServerUntil(end time.Time, names ...string) *Identity {
	a.t.Helper()
	return a.issue(&x509.Certificate{
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: end.Add(-24 * time.Hour), NotAfter: end,
	}, names...)
}

// Client issues a certificate for a client.
func (a *Authority) Client(name string) *Identity {
	a.t.Helper()
	return a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// ClientUntil issues a certificate for a client that is valid from an hour before
// the end to the end, which may lie in the past.
func (a *Authority) ClientUntil(name string, end time.Time) *Identity {
	a.t.Helper()
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: end.Add(-time.Hour), NotAfter: end,
	})
}

// issue completes and signs a template.
func (a *Authority) issue(template *x509.Certificate, names ...string) *Identity {
	a.t.Helper()
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	template.SerialNumber, template.KeyUsage = serial(a.t), x509.KeyUsageDigitalSignature
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(12*time.Hour)
	}
	key := newKey(a.t)
	leaf := sign(a.t, template, a.cert, key.Public(), a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &Identity{
		TLS:     tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf},
		Leaf:    leaf,
		CertPEM: certPEM(leaf.Raw),
		KeyPEM:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sign(t testing.TB, template, parent *x509.Certificate, public crypto.PublicKey, by crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func certPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
