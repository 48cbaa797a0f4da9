package upstream

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
)

// Identity is what TLS shows to an upstream and trusts of it. Equal sums mean
// equal identities.
type Identity struct {
	Config *tls.Config // nil: no TLS
	Sum    [32]byte
}

// Files reads the files that identities are made of, and remembers roots. Its
// zero value is ready; it is safe for concurrent use.
type Files struct{ roots rootCache }

// Given is what definitions refer to without giving it themselves.
type Given struct {
	CAFile       string       // PEM roots for APIs that name none; "": the system's
	Certificates Certificates // that are named by their ids; nil: there are none
}

// Certificates are those in a store.
type Certificates interface {
	// Find returns the certificate with an id, or nil.
	Find(id string) *certs.Certificate
}

// sessionsKept is how many TLS sessions are remembered for an upstream, so that
// further connections cost less.
const sessionsKept = 32

// Compile returns the identity for connections to target, by def's TLS settings. It
// reads files at once, so that a missing or wrong file is an error of the definition
// and not of its calls. The error names the field that is wrong.
func (s *Files) Compile(def *definition.API, target *match.Target, given Given) (Identity, error) {
	if !target.TLS {
		return Identity{}, nil
	}
	own := transportOf(def)
	host, _, err := net.SplitHostPort(target.Address)
	if err != nil {
		return Identity{}, fmt.Errorf("proxy.target_url: %w", err)
	}
	conf := &tls.Config{
		ServerName:         host,
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: own.InsecureSkipVerify,
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionsKept),
	}
	if own.ServerName != "" {
		conf.ServerName = own.ServerName
	}
	switch own.MinVersion {
	case "", "1.2":
	case "1.3":
		conf.MinVersion = tls.VersionTLS13
	default:
		return Identity{}, fmt.Errorf("proxy.transport.ssl_min_version: is %q; use 1.2 or 1.3", own.MinVersion)
	}
	sum := sha256.New()
	part := func(b []byte) { // lengths keep one part from passing for two
		sum.Write(strconv.AppendInt(nil, int64(len(b)), 10))
		sum.Write([]byte{':'})
		sum.Write(b)
	}
	part(fmt.Appendf(nil, "%s %d %t", conf.ServerName, conf.MinVersion, conf.InsecureSkipVerify))
	roots, err := s.trusted(own.CAFile, given.CAFile)
	if err != nil {
		return Identity{}, err
	}
	conf.RootCAs = roots.pool
	part(roots.sum[:])
	cert, pem, err := clientCertificate(def, &own, target, given.Certificates)
	if err != nil {
		return Identity{}, err
	}
	if cert != nil {
		conf.Certificates = []tls.Certificate{*cert}
	}
	part(pem)
	id := Identity{Config: conf}
	sum.Sum(id.Sum[:0])
	return id, nil
}

// trusted reads the roots: the API's own, or the gateway's, or none for the
// system's.
func (s *Files) trusted(own, otherwise string) (roots, error) {
	path, field := own, "proxy.transport.ssl_ca_file"
	if path == "" {
		path, field = otherwise, "upstream.ca_file"
	}
	if path == "" {
		return roots{}, nil
	}
	r, err := s.roots.read(path)
	if err != nil {
		return roots{}, fmt.Errorf("%s: %w", field, err)
	}
	return r, nil
}

// clientCertificate loads the client certificate, if there is one, and returns what
// identifies it: its PEM blocks, or its id.
func clientCertificate(def *definition.API, own *definition.Transport, target *match.Target, store Certificates) (*tls.Certificate, []byte, error) {
	certFile, keyFile, field := own.CertificateFile, own.KeyFile, "proxy.transport.ssl_certificate_file"
	if certFile == "" && keyFile != "" {
		return nil, nil, errors.New("proxy.transport.ssl_certificate_file: is missing beside ssl_key_file")
	}
	if certFile == "" {
		certFile, field = certificateFor(def.UpstreamCertificates, target)
		if _, _, ok := certs.SplitID(certFile); ok {
			cert, err := stored(store, certFile)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", field, err)
			}
			return cert, []byte(certFile), nil
		}
		keyFile = certFile
	}
	if certFile == "" {
		return nil, nil, nil
	}
	if keyFile == "" {
		return nil, nil, errors.New("proxy.transport.ssl_key_file: is missing beside ssl_certificate_file")
	}
	certPEM, err := certs.ReadFile(certFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", field, err)
	}
	keyPEM, err := certs.ReadFile(keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("proxy.transport.ssl_key_file: %w", err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s holds no certificate with its key in PEM form: %w", field, certFile, err)
	}
	return &cert, bytes.Join([][]byte{certPEM, keyPEM}, []byte{0}), nil
}

// stored finds a certificate by its id.
func stored(store Certificates, id string) (*tls.Certificate, error) {
	var found *certs.Certificate
	if store != nil {
		found = store.Find(id)
	}
	switch {
	case found == nil:
		return nil, fmt.Errorf("there is no certificate %s in the store", id)
	case found.Key == nil:
		return nil, fmt.Errorf("the certificate %s is in the store without its private key", id)
	}
	return found.TLS(), nil
}

// certificateFor picks from upstream_certificates the file for a target, and
// names the entry. An entry with a port beats one without, and both beat "*".
func certificateFor(byHost map[string]string, target *match.Target) (file, field string) {
	host, _, _ := strings.Cut(target.Address, ":")
	if h, _, err := net.SplitHostPort(target.Address); err == nil {
		host = h
	}
	for _, name := range []string{target.Address, target.Host, host, "*"} {
		if file := byHost[name]; file != "" {
			return file, fmt.Sprintf("upstream_certificates[%q]", name)
		}
	}
	return "", ""
}

// roots are certificates of authorities, and a sum of the file they are from.
type roots struct {
	pool *x509.CertPool
	sum  [32]byte
}

// rootCache keeps parsed files of roots, as thousands of APIs may name one.
type rootCache struct {
	mu     sync.Mutex
	byPath map[string]cachedRoots
}

type cachedRoots struct {
	roots
	changed time.Time
	size    int64
}

// read returns the roots in the PEM file at path, as the file is now.
func (rc *rootCache) read(path string) (roots, error) {
	info, err := os.Stat(path)
	if err != nil {
		return roots{}, err
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	known, ok := rc.byPath[path]
	if ok && known.changed.Equal(info.ModTime()) && known.size == info.Size() {
		return known.roots, nil
	}
	pem, err := certs.ReadFile(path)
	if err != nil {
		return roots{}, err
	}
	r := roots{pool: x509.NewCertPool(), sum: sha256.Sum256(pem)}
	if !r.pool.AppendCertsFromPEM(pem) {
		return roots{}, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	if rc.byPath == nil {
		rc.byPath = make(map[string]cachedRoots)
	}
	rc.byPath[path] = cachedRoots{roots: r, changed: info.ModTime(), size: info.Size()}
	return r, nil
}
