package acme

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/acme"
)

const httpChallenge = "http-01"

// tokenForm is the form of tokens (RFC 8555, section 8.1).
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

func isToken(text string) bool { return tokenForm.MatchString(text) }

// Answer returns what an authority gets for a token at a host by HTTP, or nil: then the
// request is for APIs. host may have a port.
func (m *Manager) Answer(host, token []byte) []byte {
	if !isToken(string(token)) {
		return nil
	}
	name, _, _ := strings.Cut(strings.ToLower(string(host)), ":")
	return m.find(strings.TrimSuffix(name, "."), m.entry("http", string(token)))
}

// Handshake returns how a handshake of an authority that validates a name is made, or nil
// for other handshakes (RFC 8737).
func (m *Manager) Handshake(hello *tls.ClientHelloInfo) *tls.Config {
	if len(hello.SupportedProtos) != 1 || hello.SupportedProtos[0] != acme.ALPNProto {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{acme.ALPNProto}, SessionTicketsDisabled: true,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
			text := m.find(name, m.entry("alpn", name))
			if text == nil {
				return nil, fmt.Errorf("no ACME challenge is open for the name %.100q", name)
			}
			cert, err := tls.X509KeyPair(text, text)
			return &cert, err
		},
	}
}

// find returns the answer to a challenge, which another gateway may have begun, or nil. The
// vault is asked only for domains whose certificate is due, and for few challenges at a time,
// as anyone can send what looks like one.
func (m *Manager) find(name, entry string) []byte {
	m.mu.Lock()
	answer, d := m.answers[entry], m.domains[name]
	expected := d != nil && (d.pending || d.current == nil || time.Now().After(dueAt(d.current).Add(-lookEvery)))
	m.mu.Unlock()
	if answer != nil || !expected {
		return answer
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	select {
	case m.lookUp <- struct{}{}:
		defer func() { <-m.lookUp }()
	case <-ctx.Done():
		return nil
	}
	answer, err := m.opts.Vault.Get(ctx, entry)
	if err != nil && !errors.Is(err, ErrNotFound) {
		m.opts.Log.Warn("the answer to an ACME challenge cannot be read from the shared store", "domain", name, "err", err)
	}
	return answer
}
