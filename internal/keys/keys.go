// Package keys creates, changes, rotates, resets and deletes keys. It has the rules of
// keys; a Store has their sessions.
package keys

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/rights"
)

// A Change is a change of one key.
type Change struct {
	Hash    string
	Session *definition.Session // nil: the key is deleted
	Reset   []string            // counters to reset
	New     bool                // the key must not exist yet; otherwise it must

	Successor string   // hash of a further key of the session, which is stored with it; "" if there is none
	Gone      []string // hashes of further keys that the session no longer has

	// Found is the session that the change was computed from; nil: any. If the stored
	// session has other keys by now, writing this one would remove a key, or restore
	// one that was just retired.
	Found *definition.Session
}

// A Store holds sessions by hash.
type Store interface {
	// Get returns a session, which the caller must not change, or ErrNotFound.
	Get(ctx context.Context, hash string) (*definition.Session, error)

	// List returns about count hashes, and the cursor of the next page; "" begins, and
	// "" returned means that there are no more.
	List(ctx context.Context, cursor string, count int) (hashes []string, next string, err error)

	// Commit makes a change in one step; it is durable when Commit returns nil. The
	// error is ErrExists or ErrNotFound if the key does not match New, and ErrChanged
	// if the session does not match Found.
	Commit(ctx context.Context, c Change) error
}

// Options are settings of the operator.
type Options struct {
	Hasher      *credential.Hasher // required
	MinLength   int                // shortest custom id, except of users and signers; 0 means 3
	AllowMaster bool               // keys without access rights, which may call every API, may be created
	Passwords   *password.Hasher   // of users; nil: no users can be created
}

// Service has the rules of keys. All fields are required unless they say otherwise,
// and none may change while it is in use. It is safe for concurrent use. Of two
// concurrent changes to one key the later wins, or fails with ErrChanged if the first
// one rotated the key.
type Service struct {
	Store    Store
	Counter  counter.Counter // read only; Store resets counters
	Naming   counter.Naming
	Policies func() *definition.PolicySet
	API      func(id string) *definition.API         // nil for an unknown one
	Failed   func() error                            // why API could not return one that may exist; nil: it always can
	Orgs     func() []string                         // the organisations that exist, which a custom id without one is tried with; nil: unknown
	Legacy   func(context.Context) ([]string, error) // identities in Store that are legacy hashes; nil: Store is listed for them
	Options  Options
	Now      func() time.Time
}

// A Ref names a key.
type Ref struct {
	ID     string // the key as clients send it, its custom id, or its hash
	Hashed bool   // ID is a hash
	User   bool   // ID is the name of a user
	Org    string // organisation of a custom id or a user; "" if unknown
}

// Issued is a key that was created or changed.
type Issued struct {
	Key  string // in its full form if that is known, otherwise as it was named
	Hash string // identity under which it is stored, masked if it is a legacy hash; "" if keys are stored in clear
}

// Create creates a key from s, which it does not change: a random one, or with a
// custom id the key of that id, which replaces an existing one. With suppressReset a
// replaced key's quota counters and stamps are kept.
func (k *Service) Create(ctx context.Context, customID string, s *definition.Session, suppressReset bool) (Issued, error) {
	if credential.IsOrg(customID) {
		return k.createOrg(ctx, customID, s, suppressReset)
	}
	if err := checkClient(s, new(definition.Session)); err != nil {
		return Issued{}, err
	}
	return k.create(ctx, customID, s, suppressReset)
}

func (k *Service) create(ctx context.Context, customID string, s *definition.Session, suppressReset bool) (Issued, error) {
	session, may, err := k.accept(s, nil)
	if err != nil {
		return Issued{}, err
	}
	if customID == "" && session.Extra != nil {
		customID = session.Extra.Certificate // the id of a key that is a certificate is the certificate's
	}
	session.SetCredentials(nil) // a caller cannot choose the credentials of a session
	if err := k.checkUser(customID, session); err != nil {
		return Issued{}, err
	}
	if err := k.hashPassword(ctx, session); err != nil {
		return Issued{}, err
	}
	now := k.Now()
	session.DateCreated = now.UTC().Format(time.RFC3339)
	k.expire(session, may, now)
	if customID != "" {
		return k.createCustom(ctx, customID, session, may, suppressReset)
	}
	session.LastUpdated = stampAfter("", now)
	open(session, now)
	key := credential.Generate(k.Options.Hasher.Prefix)
	hash := k.Options.Hasher.Hash(key)
	if err := k.Store.Commit(ctx, Change{Hash: hash, Session: session, New: true}); err != nil {
		return Issued{}, err
	}
	return k.issued(key, hash), nil
}

// createCustom stores a session under a custom id. It owns the session. There may be
// counters of that id even if there is no key.
func (k *Service) createCustom(ctx context.Context, id string, session *definition.Session, may *rights.Rights, suppressReset bool) (Issued, error) {
	if err := k.checkCustom(id, session.HasPassword() || session.TokenSecret() != ""); err != nil {
		return Issued{}, err
	}
	key := k.Options.Hasher.Custom(session.OrgID, id)
	hash := k.Options.Hasher.Hash(key)
	old, err := k.Store.Get(ctx, hash)
	if err != nil && !isAbsent(err) {
		return Issued{}, err
	}
	if err == nil && old.SuccessorOf() != "" {
		return Issued{}, &CustomError{Reason: "must not be a key that followed another one; change that instead"}
	}
	if err == nil && old.OAuthClient() != "" {
		return Issued{}, &CustomError{Reason: "must not be an OAuth client; change that instead"}
	}
	c := Change{Hash: hash, Session: session, New: err != nil}
	if c.New {
		old = session
	}
	c.Gone = further(hash, old)
	c.Reset = k.stamp(hash, session, old, suppressReset, may)
	if err := k.Store.Commit(ctx, c); err != nil {
		return Issued{}, err
	}
	return k.issued(key, hash), nil
}

// stamp sets the stamps of a session that replaces old, and returns the counters to
// reset because of that.
func (k *Service) stamp(hash string, session, old *definition.Session, suppressReset bool, may *rights.Rights) []string {
	now := k.Now()
	if !suppressReset || old.LastUpdated == "" {
		session.LastUpdated = stampAfter(old.LastUpdated, now)
	} else {
		session.LastUpdated = old.LastUpdated
	}
	if suppressReset || !k.resets(may) {
		keepPeriods(session, old)
		return nil
	}
	open(session, now)
	return k.counters(hash, old, session)
}

// accept checks the session that a caller sends in place of old, nil for a new one, and
// returns a copy of it and its access rights.
func (k *Service) accept(s, old *definition.Session) (*definition.Session, *rights.Rights, error) {
	if err := s.Validate(); err != nil {
		return nil, nil, err
	}
	session := s.Clone()
	session.SetQuotas(nil) // they are shown, not taken
	may, err := rights.Effective(session, k.Policies())
	switch {
	case err != nil:
		return nil, nil, &PolicyError{Cause: err}
	case may.Master && !k.Options.AllowMaster:
		return nil, nil, ErrMaster
	}
	if err := k.checkNames(session, old, may); err != nil {
		return nil, nil, err
	}
	return session, may, nil
}

// checkCustom refuses ids that can be guessed, that look like generated keys, and that
// cannot be written where keys are sent. The id of a user, or of a key that signs tokens,
// is a name: the password or the secret is what cannot be guessed.
func (k *Service) checkCustom(id string, isName bool) error {
	least := k.Options.MinLength
	if isName || least == 0 {
		least = minName
	}
	const most = 512
	generated := credential.HasPrefix(k.Options.Hasher.Prefix, []byte(id))
	hash, based := credential.Named([]byte(id))
	switch {
	case len(id) < least:
		return &CustomError{Reason: fmt.Sprintf("must have %d characters at least", least)}
	case len(id) > most:
		return &CustomError{Reason: fmt.Sprintf("must have %d characters at most", most)}
	case generated && !credential.Check(k.Options.Hasher.Prefix, []byte(id)):
		return &CustomError{Reason: fmt.Sprintf("must not begin with %s, as generated keys do", k.Options.Hasher.Prefix)}
	case based && hash != credential.Name(credential.SHA256):
		return &CustomError{Reason: fmt.Sprintf("names %s as its hash (h); new keys are stored under sha256 only: name that, or choose a plain id", hash)}
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"\/?#%`, r) }):
		return &CustomError{Reason: `must consist of visible ASCII characters other than " \ / ? # %`}
	}
	return nil
}

// minName is the shortest id that is a name and no secret.
const minName = 3

func (k *Service) issued(key, hash string) Issued {
	if k.Options.Hasher.Algorithm == credential.None {
		return Issued{Key: key}
	}
	return Issued{Key: key, Hash: k.Options.Hasher.Listed(hash)}
}

// expire sets the expiry of a new key if a policy limits the lifetime of keys; of
// several policies the shortest lifetime applies.
func (k *Service) expire(session *definition.Session, may *rights.Rights, now time.Time) {
	shortest := int64(0)
	policies := k.Policies()
	for _, id := range may.Policies {
		p := policies.Get(id)
		if p != nil && p.KeyExpiresIn > 0 && (shortest == 0 || p.KeyExpiresIn < shortest) {
			shortest = p.KeyExpiresIn
		}
	}
	if shortest > 0 {
		session.Expires = now.Unix() + shortest
	}
}

// resets reports whether creating or changing a key resets its used quota: it does if
// at least one of its APIs does not keep it.
func (k *Service) resets(may *rights.Rights) bool {
	keeps := false
	for _, id := range may.APIs() {
		api := k.API(id)
		switch {
		case api == nil:
		case !api.KeepsQuota():
			return true
		default:
			keeps = true
		}
	}
	return !keeps
}

// open sets the stamps of quotas that begin anew.
func open(session *definition.Session, now time.Time) {
	begin := func(l *definition.Limits, remaining, renews *int64) {
		*remaining, *renews = max(l.QuotaMax, 0), 0
		if l.QuotaMax > 0 {
			*renews = renewalOf(l, now)
		}
	}
	begin(&session.Limits, &session.QuotaRemaining, &session.QuotaRenews)
	for _, e := range session.AccessRights {
		if e.Limit != nil {
			begin(&e.Limit.Limits, &e.Limit.QuotaRemaining, &e.Limit.QuotaRenews)
		}
	}
}

// renewalOf returns when a quota that begins now renews, in unix seconds; 0 means
// never.
func renewalOf(l *definition.Limits, now time.Time) int64 {
	if l.Renewal.On() {
		if clock, err := definition.NewQuotaClock(*l.Renewal); err == nil { // it was checked with the session
			return clock.End(now.UnixMilli()) / 1000
		}
	}
	if l.QuotaRenewalRate > 0 {
		return now.Unix() + l.QuotaRenewalRate
	}
	return 0
}

// counters returns the names of every quota counter that a key may have had under
// sessions: of the key, of its APIs and of its policies. Former versions of its
// policies are unknown, so all possible scopes are included.
func (k *Service) counters(hash string, sessions ...*definition.Session) []string {
	scopes := []string{""}
	seen := map[string]bool{"": true}
	add := func(scope string) {
		if !seen[scope] {
			seen[scope] = true
			scopes = append(scopes, scope)
		}
	}
	policies := k.Policies()
	for _, s := range sessions {
		for _, id := range sortedKeys(s.AccessRights) {
			add(id)
		}
		for _, id := range s.Policies() {
			add(id)
			if p := policies.Get(id); p != nil {
				for _, api := range sortedKeys(p.AccessRights) {
					add(api)
				}
			}
		}
	}
	for i, scope := range scopes {
		scopes[i] = k.Naming.Quota(scope, hash)
	}
	return scopes
}
