package admin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// rememberEvery is the interval of reading what gateways need while the database is away.
const rememberEvery = 10 * time.Second

// answerGatewayWithin bounds a statement that is made for a gateway, which waits 5 s for
// an answer: what is remembered must reach it before.
const answerGatewayWithin = 1500 * time.Millisecond

// gatewayMemory is what gateways need beside the configuration: who they are, and
// certificates. It lets a gateway start while the database is away. Private keys in it
// are sealed.
type gatewayMemory struct {
	mu           sync.RWMutex
	org          string                    // the first one; "": not known yet
	users        map[string]rest.Principal // with the role gateway, by the hash of the access key
	certificates []store.Certificate
	known        bool // certificates were read
}

// firstOrg returns the organisation of gateways, "" if it is not known.
func (m *gatewayMemory) firstOrg() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.org
}

// user returns the gateway with the hash of an access key.
func (m *gatewayMemory) user(hash []byte) (who rest.Principal, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	who, ok = m.users[string(hash)]
	return who, ok
}

// certs returns the certificates, unless they were never read.
func (m *gatewayMemory) certs() (rows []store.Certificate, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.certificates, m.known
}

func (m *gatewayMemory) setOrg(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.org = id
}

func (m *gatewayMemory) setUsers(all map[string]rest.Principal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users = all
}

func (m *gatewayMemory) setCerts(rows []store.Certificate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.certificates, m.known = rows, true
}

// remember keeps the memory up to date until ctx ends: at intervals, and whenever the
// configuration has changed. What cannot be read stays as it is.
func (s *Server) remember(ctx context.Context) {
	tick := time.NewTicker(rememberEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		changed := s.gateways.Changed()
		s.rememberNow(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-changed:
		}
	}
}

func (s *Server) rememberNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if org, err := s.deps.Store.FirstOrg(ctx); err == nil {
		s.memory.setOrg(org)
	}
	if rows, err := s.deps.Store.GatewayUsers(ctx); err == nil {
		all := make(map[string]rest.Principal, len(rows))
		for i := range rows {
			all[string(rows[i].AccessKeyHash)] = principalOf(&rows[i])
		}
		s.memory.setUsers(all)
	}
	if rows, err := s.deps.Store.AllCertificates(ctx); err == nil {
		s.memory.setCerts(rows)
	}
}

// gatewayOrg returns the organisation in whose name gateways with the token act. It does
// not wait for a database that is away.
func (s *Server) gatewayOrg(ctx context.Context) (string, error) {
	if org := s.memory.firstOrg(); org != "" {
		return org, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerGatewayWithin)
	defer cancel()
	org, err := s.deps.Store.FirstOrg(ctx)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnavailable) {
		// Before the first start is complete there is no organisation, and the
		// configuration can be in memory before the organisation is.
		return "", nil
	}
	return org, err
}

// userByKey returns the user with the hash of an access key. While the database is away
// it finds gateways alone.
func (s *Server) userByKey(ctx context.Context, hash []byte) (rest.Principal, error) {
	who, remembered := s.memory.user(hash)
	if remembered {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerGatewayWithin)
		defer cancel()
	}
	user, err := s.deps.Store.UserByKey(ctx, hash)
	switch {
	case err == nil:
		return principalOf(&user), nil
	case remembered && errors.Is(err, store.ErrUnavailable):
		return who, nil
	}
	return rest.Principal{}, err
}

// principalOf returns a user as a caller.
func principalOf(u *store.User) rest.Principal {
	who := rest.Principal{Org: u.OrgID, Home: u.OrgID, ID: u.ID, Name: u.Email, Kind: "user", Role: rest.Role(u.Role)}
	if who.Role == rest.Gateway {
		who.Kind = "gateway"
	}
	return who
}

// certificateRows returns all certificates, those in memory while the database is away.
func (s *Server) certificateRows(ctx context.Context) ([]store.Certificate, error) {
	remembered, known := s.memory.certs()
	if known {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerGatewayWithin)
		defer cancel()
	}
	rows, err := s.deps.Store.AllCertificates(ctx)
	if known && errors.Is(err, store.ErrUnavailable) {
		return remembered, nil
	}
	if err == nil {
		s.memory.setCerts(rows)
	}
	return rows, err
}
