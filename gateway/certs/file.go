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
	Cert string // PEM: the certificate and those that lead to its authority
	Key  string // PEM: its private key; "" when that is in Cert too
}

// ParsePair reads how a setting names a certificate: one file with everything, or
// certificate and key with a colon between.
func ParsePair(text string) (Pair, error) {
	cert, key, two := strings.Cut(text, ":")
	cert, key = strings.TrimSpace(cert), strings.TrimSpace(key)
	if cert == "" || two && key == "" {
		return Pair{}, fmt.Errorf("%q names no certificate; want such as site.pem, or site.crt:site.key", text)
	}
	return Pair{cert, key}, nil
}

// read reads the files as they are now.
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

// succeed is read for the certificate after another one, which may be nil. An
// expired one does not take the place of one that is valid.
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

// watched is what is read of files, as long as it was good the last time.
type watched[T any] struct {
	paths []string
	load  func(before T) (T, error)
	now   T // the last that was good
	stamp string
	wrong error // why the last try was not good
}

// refresh reads again what has changed since the last try, or all with force. It
// tells whether there is something new. What cannot be read leaves what there is.
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
			return false, nil // said before
		}
		return false, err
	}
	w.now, w.wrong = next, nil
	return true, nil
}

// stampOf is another text once one of the files is another one.
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
