package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// ca is an authority with the certificates that tests need.
type ca struct {
	file       string // PEM of the authority
	roots      *x509.CertPool
	server     tls.Certificate // for 127.0.0.1 and upstream.test
	clientFile string          // certificate and key of a client in one file
	certFile   string          // the same apart
	keyFile    string
}

var testCA struct {
	once sync.Once
	ca
	err error
}

// authority makes the authority once; its files stay until the process ends.
func authority(t testing.TB) *ca {
	t.Helper()
	testCA.once.Do(func() { testCA.err = testCA.make() })
	if testCA.err != nil {
		t.Fatal(testCA.err)
	}
	return &testCA.ca
}

func (a *ca) make() error {
	dir, err := os.MkdirTemp("", "sluice-upstream-test-")
	if err != nil {
		return err
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return err
	}
	a.roots = x509.NewCertPool()
	rootPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	a.roots.AppendCertsFromPEM(rootPEM)
	issue := func(serial int64, usage x509.ExtKeyUsage) (certPEM, keyPEM []byte, err error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
			DNSNames: []string{"upstream.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, rootKey)
		if err != nil {
			return nil, nil, err
		}
		keyDER, err := x509.MarshalECPrivateKey(key)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), err
	}
	cert, key, err := issue(2, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return err
	}
	if a.server, err = tls.X509KeyPair(cert, key); err != nil {
		return err
	}
	if cert, key, err = issue(3, x509.ExtKeyUsageClientAuth); err != nil {
		return err
	}
	for _, f := range []struct {
		path *string
		name string
		pem  []byte
	}{
		{&a.file, "ca.pem", rootPEM},
		{&a.certFile, "client.crt", cert},
		{&a.keyFile, "client.key", key},
		{&a.clientFile, "client.pem", append(append([]byte{}, cert...), key...)},
	} {
		*f.path = filepath.Join(dir, f.name)
		if err := os.WriteFile(*f.path, f.pem, 0o600); err != nil {
			return err
		}
	}
	return nil
}
