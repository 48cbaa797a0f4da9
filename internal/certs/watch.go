package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
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

// Read reads the files. The certificate has its private key.
func (p Pair) Read() (*Certificate, error) {
	text, err := ReadFile(p.Cert)
	if err != nil {
		return nil, err
	}
	if p.Key != "" {
		key, err := ReadFile(p.Key)
		if err != nil {
			return nil, err
		}
		text = append(append(text, '\n'), key...)
	}
	c, err := Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", p.Cert, err)
	case c.Key == nil:
		return nil, fmt.Errorf("%s: has no private key; add the key to the file, or name the file that holds it", p.Cert)
	}
	return c, nil
}

// succeed is Read for the certificate after another one, which may be nil. An expired
// one does not replace a valid one.
func (p Pair) succeed(before *Certificate) (*Certificate, error) {
	c, err := p.Read()
	if err != nil {
		return nil, err
	}
	if now := time.Now(); before != nil && now.After(c.Leaf.NotAfter) && !now.After(before.Leaf.NotAfter) {
		return nil, fmt.Errorf("%s: the certificate has expired on %s", p.Cert, c.Leaf.NotAfter.UTC().Format(time.DateTime))
	}
	return c, nil
}

// ReadAuthorities reads a file with certificates of authorities.
func ReadAuthorities(path string) (*x509.CertPool, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoCertificate)
	}
	return pool, nil
}

// Watched is content of files that is read again when they change. It is not safe for
// concurrent use.
type Watched[T any] struct {
	Now T // the last valid content

	paths []string
	load  func(before T) (T, error)
	stamp string
	wrong error // error of the last attempt
}

// Watch returns the content of a certificate's files, which Refresh reads.
func (p Pair) Watch() *Watched[*Certificate] {
	paths := []string{p.Cert}
	if p.Key != "" {
		paths = append(paths, p.Key)
	}
	return &Watched[*Certificate]{paths: paths, load: p.succeed}
}

// WatchAuthorities returns the content of a file of authorities, which Refresh reads.
func WatchAuthorities(path string) *Watched[*x509.CertPool] {
	return &Watched[*x509.CertPool]{paths: []string{path}, load: func(*x509.CertPool) (*x509.CertPool, error) { return ReadAuthorities(path) }}
}

// Refresh reads files that have changed since the last attempt, or all with force, and
// reports whether there is new content. After an error the old content stays; without force,
// an error that was returned before is not returned again.
func (w *Watched[T]) Refresh(force bool) (fresh bool, err error) {
	stamp := stampOf(w.paths)
	if !force && stamp == w.stamp {
		return false, nil
	}
	w.stamp = stamp
	next, err := w.load(w.Now)
	if err != nil {
		repeated := w.wrong != nil && w.wrong.Error() == err.Error()
		if w.wrong = err; repeated && !force {
			return false, nil
		}
		return false, err
	}
	w.Now, w.wrong = next, nil
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
