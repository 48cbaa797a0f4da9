// Package certs reads X.509 certificates from PEM, names and writes them. The gateway
// and the admin share it.
package certs

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
)

// MaxPEM is the largest PEM form of one certificate with its chain and key, in bytes.
const MaxPEM = 64 << 10

// Bounds of a PEM: certificates, the bits of an RSA key, and the bytes of a private
// key, which are enough for an RSA key of that size. A larger key would cost seconds
// for every handshake, and clients refuse it.
const (
	maxChain  = 16
	maxRSA    = 8192
	maxKeyDER = 8 << 10
)

// Certificate is a certificate, its chain, and optionally its private key. It does not
// change.
type Certificate struct {
	Leaf  *x509.Certificate
	Chain [][]byte      // DER, the leaf first
	Key   crypto.Signer // nil if there is no private key
	Sum   string        // SHA-256 of the leaf's DER, 64 lower-case hexadecimal digits
}

// ErrNoCertificate means that a text has no certificate in PEM form.
var ErrNoCertificate = errors.New("holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)")

// Parse reads a certificate with its chain and optionally its private key, in any
// order, except that the certificate itself comes before its chain. Errors never quote
// the text.
func Parse(text []byte) (*Certificate, error) {
	if len(text) > MaxPEM {
		return nil, fmt.Errorf("is %d bytes long; a certificate with its chain and key has at most %d", len(text), MaxPEM)
	}
	c := new(Certificate)
	var keyDER []byte
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch {
		case block.Type == "CERTIFICATE":
			if err := c.add(block.Bytes); err != nil {
				return nil, err
			}
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, errors.New("holds a private key that is protected by a password; take the password off (openssl pkey)")
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"): // such as EC PARAMETERS
		case keyDER != nil:
			return nil, errors.New("holds two private keys; a certificate has one")
		default:
			keyDER = block.Bytes
		}
	}
	if c.Leaf == nil {
		return nil, ErrNoCertificate
	}
	if keyDER != nil {
		if err := c.setKey(keyDER); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add appends a certificate to the chain.
func (c *Certificate) add(der []byte) error {
	if len(c.Chain) == maxChain {
		return fmt.Errorf("holds more than %d certificates; give one, with those that lead to its authority", maxChain)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("certificate %d is malformed: %w", len(c.Chain)+1, err)
	}
	if key, ok := parsed.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
		return fmt.Errorf("certificate %d has an RSA key of %d bits; at most %d are of use", len(c.Chain)+1, key.N.BitLen(), maxRSA)
	}
	if c.Leaf == nil {
		c.Leaf, c.Sum = parsed, SumOf(der)
	}
	c.Chain = append(c.Chain, der)
	return nil
}

// setKey sets the private key, which must be that of the leaf.
func (c *Certificate) setKey(der []byte) error {
	key, err := parseKey(der)
	if err != nil {
		return err
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(c.Leaf.PublicKey) {
		return errors.New("the private key does not belong to the (first) certificate")
	}
	c.Key = key
	return nil
}

func parseKey(der []byte) (crypto.Signer, error) {
	if len(der) > maxKeyDER { // checked before anything is computed with the key
		return nil, fmt.Errorf("the private key is %d bytes long; one of RSA with %d bits, the largest of use, has at most %d", len(der), maxRSA, maxKeyDER)
	}
	var key any
	var err error
	if key, err = x509.ParsePKCS8PrivateKey(der); err != nil {
		if key, err = x509.ParseECPrivateKey(der); err != nil {
			key, err = x509.ParsePKCS1PrivateKey(der)
		}
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		// Errors of the parsers may quote the key.
		return nil, errors.New("the private key is malformed or of a kind other than RSA, ECDSA and Ed25519")
	}
	return signer, nil
}

// SumOf returns the SHA-256 of a certificate's DER, in the form that ids have.
func SumOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// ID returns the id of the certificate in an organisation.
func (c *Certificate) ID(org string) string { return org + c.Sum }

// SplitID splits the id of a certificate. It returns false if it is no id, as for the
// path of a file.
func SplitID(id string) (org, sum string, ok bool) { return definition.SplitCertificateID(id) }

// TLS returns the certificate as crypto/tls has it. It must have its key.
func (c *Certificate) TLS() *tls.Certificate {
	return &tls.Certificate{Certificate: c.Chain, PrivateKey: c.Key, Leaf: c.Leaf}
}

// PublicPEM returns the certificate and its chain, without the key.
func (c *Certificate) PublicPEM() []byte {
	var b bytes.Buffer
	for _, der := range c.Chain {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return b.Bytes()
}

// KeyPEM returns the private key, or "" if there is none.
func (c *Certificate) KeyPEM() ([]byte, error) {
	if c.Key == nil {
		return nil, nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.Key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Names returns the names of servers with this certificate, in lower case: host names,
// wildcards and addresses. An older certificate may have its name in the subject
// alone.
func (c *Certificate) Names() []string {
	names := make([]string, 0, len(c.Leaf.DNSNames)+len(c.Leaf.IPAddresses))
	for _, name := range c.Leaf.DNSNames {
		names = append(names, strings.ToLower(strings.TrimSuffix(name, ".")))
	}
	for _, ip := range c.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	if cn := c.Leaf.Subject.CommonName; len(names) == 0 && isHost(cn) {
		names = append(names, strings.ToLower(cn))
	}
	return names
}

// isHost reports whether a subject can be the name of a server.
func isHost(name string) bool {
	return name != "" && !strings.ContainsAny(name, " /:@") && (strings.Contains(name, ".") || name == "localhost") || net.ParseIP(name) != nil
}

// MayServe reports whether servers may use the certificate: its private key is known,
// it is not the certificate of an authority, and it is not for clients alone.
func (c *Certificate) MayServe() bool { return c.Key != nil && c.forServers() }

func (c *Certificate) forServers() bool {
	if c.Leaf.IsCA {
		return false
	}
	if len(c.Leaf.ExtKeyUsage)+len(c.Leaf.UnknownExtKeyUsage) == 0 {
		return true
	}
	for _, usage := range c.Leaf.ExtKeyUsage {
		if usage == x509.ExtKeyUsageServerAuth || usage == x509.ExtKeyUsageAny {
			return true
		}
	}
	return false
}
