package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
)

// Pair names the files of one certificate.
type Pair struct {
	Cert string // PEM: the certificate and its chain
	Key  string // PEM: the private key; "" if it is in Cert
}

// ParsePair parses a setting that names a certificate: one file, or certificate and key
// separated by a colon.
func ParsePair(text string) (Pair, error) {
	cert, key, two := strings.Cut(text, ":")
	cert, key = strings.TrimSpace(cert), strings.TrimSpace(key)
	if cert == "" || two && key == "" {
		return Pair{}, fmt.Errorf("%q names no certificate; want such as site.pem, or site.crt:site.key", text)
	}
	return Pair{cert, key}, nil
}

// read reads the files.
func (p Pair) read() (*certs.Certificate, error) {
	text, err := certs.ReadFile(p.Cert)
	if err != nil {
		return nil, err
	}
	if p.Key != "" {
		key, err := certs.ReadFile(p.Key)
		if err != nil {
			return nil, err
		}
		text = append(append(text, '\n'), key...)
	}
	c, err := certs.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", p.Cert, err)
	case c.Key == nil:
		return nil, fmt.Errorf("%s: has no private key; add the key to the file, or name the file that holds it", p.Cert)
	}
	return c, nil
}

// succeed is read for the certificate after another one, which may be nil. An expired
// one does not replace a valid one.
func (p Pair) succeed(before *certs.Certificate) (*certs.Certificate, error) {
	c, err := p.read()
	if err != nil {
		return nil, err
	}
	if now := time.Now(); before != nil && now.After(c.Leaf.NotAfter) && !now.After(before.Leaf.NotAfter) {
		return nil, fmt.Errorf("%s: the certificate has expired on %s", p.Cert, c.Leaf.NotAfter.UTC().Format(time.DateTime))
	}
	return c, nil
}

// readPool reads a file with certificates of authorities.
func readPool(path string) (*x509.CertPool, error) {
	text, err := certs.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %w", path, certs.ErrNoCertificate)
	}
	return pool, nil
}

// watched is content of files that is reloaded when they change.
type watched[T any] struct {
	paths []string
	load  func(before T) (T, error)
	now   T // the last valid content
	stamp string
	wrong error // error of the last attempt
}

// refresh reads files that have changed since the last attempt, or all with force, and
// reports whether there is new content. After an error the old content stays.
func (w *watched[T]) refresh(force bool) (fresh bool, err error) {
	stamp := stampOf(w.paths)
	if !force && stamp == w.stamp {
		return false, nil
	}
	w.stamp = stamp
	next, err := w.load(w.now)
	if err != nil {
		repeated := w.wrong != nil && w.wrong.Error() == err.Error()
		if w.wrong = err; repeated && !force {
			return false, nil // already reported
		}
		return false, err
	}
	w.now, w.wrong = next, nil
	return true, nil
}

// stampOf returns a text that changes with the files.
func stampOf(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			b.WriteString("none ")
		case err != nil:
			b.WriteString("unknown ")
		default:
			fmt.Fprint(&b, info.ModTime().UnixNano(), info.Size(), " ")
		}
	}
	return b.String()
}
