package acme

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/sleep"
)

// orderWithin bounds an attempt to obtain a certificate, and how long others wait for it.
const orderWithin = 5 * time.Minute

// pauses are those after failed attempts. Authorities count failed validations: Let's Encrypt
// allows five an hour for a name.
var pauses = []time.Duration{time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour}

// maxPause is the longest pause, also if the authority asks for a longer one.
const maxPause = 24 * time.Hour

// How long entries outlive their use.
const (
	challengeFor = time.Hour
	expiredFor   = 30 * 24 * time.Hour
)

// attempt orders a certificate, unless another gateway does, or one failed a short while ago.
// It returns when to look again.
func (m *Manager) attempt(ctx context.Context, name string) time.Duration {
	holder, lease := cryptorand.Text(), m.entry("certificate", name)
	failures, granted, err := m.opts.Vault.Take(ctx, lease, holder, orderWithin+time.Minute)
	switch {
	case err != nil:
		m.vaultAway(name, err)
		return awayEvery
	case !granted:
		return m.await(name)
	}
	if due, err := m.refresh(ctx, name); err == nil && !due || m.restore(ctx, name) { // another gateway was faster
		m.settle(ctx, name, holder, Outcome{})
		return lookEvery
	}
	m.opts.Log.Info("ordering a certificate by ACME", "domain", name, "directory", m.opts.Directory)
	ordering, cancel := context.WithTimeout(ctx, orderWithin)
	defer cancel()
	c, err := m.obtain(ordering, name)
	if ctx.Err() != nil { // the gateway stops
		m.settle(context.WithoutCancel(ctx), name, holder, Outcome{Failures: failures})
		return lookEvery
	}
	if err != nil {
		m.note(ctx, name, holder, failures+1, err)
		return m.await(name)
	}
	m.issued.Add(1)
	m.opts.Log.Info("a certificate was issued by ACME", "domain", name, "not_after", c.Leaf.NotAfter, "fingerprint", c.Sum[:12])
	m.settle(ctx, name, holder, Outcome{})
	return lookEvery
}

// await returns when to look again for a certificate whose lease is not granted.
func (m *Manager) await(name string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.domains[name]
	d.waits++
	return min(awaitFirst<<min(d.waits-1, 10), awaitMost)
}

// restore stores a valid certificate that the vault has lost, and reports whether there was
// one: that needs no order.
func (m *Manager) restore(ctx context.Context, name string) bool {
	m.mu.Lock()
	d := m.domains[name]
	d.waits = 0
	c := d.current
	m.mu.Unlock()
	if c == nil || dueAt(c).Before(time.Now()) {
		return false
	}
	text, err := textOf(c)
	if err == nil {
		err = m.put(ctx, name, c, text)
	}
	if err != nil {
		m.opts.Log.Warn("a certificate was not stored for the other gateways", "domain", name, "err", err)
	}
	return err == nil
}

// put stores a certificate in the vault.
func (m *Manager) put(ctx context.Context, name string, c *certs.Certificate, text []byte) error {
	return m.opts.Vault.Put(ctx, m.entry("certificate", name), text, time.Until(c.Leaf.NotAfter)+expiredFor)
}

// note records a failed attempt.
func (m *Manager) note(ctx context.Context, name, holder string, failures int, err error) {
	m.failed.Add(1)
	pause := pauses[min(failures, len(pauses))-1]
	if asked, limited := retryAfter(err); limited {
		pause = min(max(pause, asked), maxPause)
	}
	m.opts.Log.Error("no certificate was obtained by ACME; one that is in use stays", "domain", name, "failures", failures, "next_try_in", pause, "err", err)
	text := strings.ToValidUTF8(err.Error(), "")
	text = strings.ToValidUTF8(text[:min(len(text), 1000)], "")
	m.mu.Lock()
	m.domains[name].failure = text
	m.mu.Unlock()
	m.settle(ctx, name, holder, Outcome{Failures: failures, Error: text, Pause: pause})
}

// retryAfter returns the pause that the authority asks for.
func retryAfter(err error) (time.Duration, bool) {
	said, ok := errors.AsType[*acme.Error](err)
	if !ok {
		return 0, false
	}
	return acme.RateLimit(said)
}

func (m *Manager) settle(ctx context.Context, name, holder string, end Outcome) {
	if err := m.opts.Vault.Settle(ctx, m.entry("certificate", name), holder, end); err != nil && ctx.Err() == nil {
		m.opts.Log.Warn("the end of an ACME order was not recorded; no gateway tries again for a while", "domain", name, "err", err)
	}
}

// obtain obtains a certificate, stores it, and has it served.
func (m *Manager) obtain(ctx context.Context, name string) (*certs.Certificate, error) {
	client, err := m.account(ctx)
	if err != nil {
		return nil, fmt.Errorf("the account: %w", err)
	}
	order, err := m.authorize(ctx, client, name)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(cryptorand.Reader, &x509.CertificateRequest{DNSNames: []string{name}}, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, order, request, true)
	if err != nil {
		return nil, fmt.Errorf("the order: %w", err)
	}
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	c, err := parse(text, name)
	if err != nil {
		return nil, fmt.Errorf("the authority's answer: %w", err)
	}
	m.show(name, c)
	m.keep(ctx, name, c)
	m.done(name)
	if err := m.put(ctx, name, c, text); err != nil {
		return nil, fmt.Errorf("the certificate was issued, but not stored for the other gateways: %w", err)
	}
	return c, nil
}

func (m *Manager) done(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.domains[name].failure = ""
}

func keyText(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// authorize proves to the authority that the gateways answer for a name, by the first
// challenge that succeeds, and returns an order that is ready.
func (m *Manager) authorize(ctx context.Context, client *acme.Client, name string) (*acme.Order, error) {
	var failures []error
	for _, kind := range m.opts.Challenges {
		order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(name))
		if err != nil {
			return nil, fmt.Errorf("the order: %w", errors.Join(append(failures, err)...))
		}
		if order.Status == acme.StatusReady {
			return order, nil
		}
		if err = m.prove(ctx, client, order, kind, name); err == nil {
			order, err = client.WaitOrder(ctx, order.URI)
		}
		if err == nil {
			return order, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", kind, err))
	}
	return nil, errors.Join(failures...)
}

// prove passes the challenges of one kind in an order.
func (m *Manager) prove(ctx context.Context, client *acme.Client, order *acme.Order, kind, name string) error {
	for _, at := range order.AuthzURLs {
		authorization, err := client.GetAuthorization(ctx, at)
		if err != nil {
			return err
		}
		if authorization.Status != acme.StatusPending {
			continue
		}
		i := slices.IndexFunc(authorization.Challenges, func(c *acme.Challenge) bool { return c.Type == kind })
		if i < 0 {
			return errors.New("the authority does not offer this challenge")
		}
		if err := m.pass(ctx, client, authorization.Challenges[i], at, name); err != nil {
			return err
		}
	}
	return nil
}

// pass passes a challenge of an authorization. The answer is in the vault meanwhile, since
// the authority may reach another gateway.
func (m *Manager) pass(ctx context.Context, client *acme.Client, c *acme.Challenge, authorization, name string) error {
	entry, answer, err := m.answerTo(client, c, name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.answers[entry] = answer
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.answers, entry)
		m.mu.Unlock()
		if err := m.opts.Vault.Delete(context.WithoutCancel(ctx), entry); err != nil {
			m.opts.Log.Warn("the answer to an ACME challenge was not deleted; it is forgotten in an hour", "domain", name, "err", err)
		}
	}()
	if err := m.opts.Vault.Put(ctx, entry, answer, challengeFor); err != nil {
		return fmt.Errorf("storing the answer for the other gateways: %w", err)
	}
	if _, err := client.Accept(ctx, c); err != nil {
		return err
	}
	_, err = client.WaitAuthorization(ctx, authorization)
	return err
}

// answerTo returns the answer to a challenge, and the name of its entry.
func (m *Manager) answerTo(client *acme.Client, c *acme.Challenge, name string) (entry string, answer []byte, err error) {
	if c.Type == httpChallenge {
		if !isToken(c.Token) {
			return "", nil, errors.New("the authority sent a malformed token")
		}
		text, err := client.HTTP01ChallengeResponse(c.Token)
		return m.entry("http", c.Token), []byte(text), err
	}
	cert, err := client.TLSALPN01ChallengeCert(c.Token, name)
	if err != nil {
		return "", nil, err
	}
	answer, err = keyText(cert.PrivateKey.(crypto.Signer))
	return m.entry("alpn", name), append(answer, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})...), err
}

// account returns a client with the account that gateways share, which is created if there
// is none.
func (m *Manager) account(ctx context.Context) (*acme.Client, error) {
	m.accounts.Lock()
	defer m.accounts.Unlock()
	if m.client != nil {
		return m.client, nil
	}
	key, err := m.accountKey(ctx)
	if err != nil {
		return nil, err
	}
	client := &acme.Client{Key: key, DirectoryURL: m.opts.Directory, UserAgent: "sluice", HTTPClient: &http.Client{Transport: m.opts.Transport, Timeout: time.Minute}}
	account := new(acme.Account)
	if m.opts.Email != "" {
		account.Contact = []string{"mailto:" + m.opts.Email}
	}
	_, err = client.Register(ctx, account, acme.AcceptTOS) // gateway.acme.accept_terms is required
	if err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, err
	}
	m.client = client
	return client, nil
}

// accountKey returns the account's key. Of gateways that find none at the same time, one
// creates it, and the others wait.
func (m *Manager) accountKey(ctx context.Context) (crypto.Signer, error) {
	entry, holder := m.prefix+"account", cryptorand.Text()
	for {
		if key, err := m.storedKey(ctx, entry); err == nil || !errors.Is(err, ErrNotFound) {
			return key, err
		}
		_, granted, err := m.opts.Vault.Take(ctx, entry, holder, time.Minute)
		if err != nil {
			return nil, err
		}
		if granted {
			break
		}
		if err := sleep.For(ctx, time.Second); err != nil {
			return nil, fmt.Errorf("another gateway creates it: %w", err)
		}
	}
	key, err := m.storedKey(ctx, entry)
	if errors.Is(err, ErrNotFound) {
		key, err = m.newKey(ctx, entry)
	}
	return key, errors.Join(err, m.opts.Vault.Settle(ctx, entry, holder, Outcome{}))
}

func (m *Manager) newKey(ctx context.Context, entry string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	return key, m.opts.Vault.Put(ctx, entry, text, 0)
}

// storedKey returns the account's key in the vault, or ErrNotFound, also for one that cannot
// be used.
func (m *Manager) storedKey(ctx context.Context, entry string) (crypto.Signer, error) {
	text, err := m.opts.Vault.Get(ctx, entry)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if signer, ok := key.(*ecdsa.PrivateKey); ok {
				return signer, nil
			}
		}
	}
	m.opts.Log.Error("the stored key of the ACME account cannot be used; another account is created")
	return nil, ErrNotFound
}
