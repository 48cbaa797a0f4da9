// Package credentials is how developers get the credentials that they call APIs with,
// and what becomes of these: key requests and the decisions on them, keys and users,
// and OAuth clients with their access tokens (RFC 6749, section 4.4).
package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/password"
)

// Kinds of credentials: the values of auth_type in a catalogue entry.
const (
	Token = "authToken" // a key
	Basic = "basic"     // a user's name and password
	OAuth = "oauth"     // a client's id and secret
)

// MaxKeys bounds the keys of a developer.
const MaxKeys = 1000

// Members of a session's meta data that name the origin of a key.
const (
	metaDeveloper = "developer_id"
	metaRequest   = "key_request_id"
)

// Events raises events in the transaction of their cause.
type Events interface {
	Emit(ctx context.Context, tx *store.Tx, e model.Event) error
}

// KeyDeps are the dependencies of Keys. All are required.
type KeyDeps struct {
	Store    *store.Store
	Counters counter.Counter // of the keys' quotas
	Naming   counter.Naming  // of Counters
	Options  keys.Options    // how keys are made; without Passwords there are no users
	Deliver  func(hash string)
	Events   Events
	Now      func() time.Time
	Log      *slog.Logger
}

// Keys issues and changes developers' keys. It is safe for concurrent use.
type Keys struct{ d KeyDeps }

// NewKeys returns Keys.
func NewKeys(d KeyDeps) *Keys { return &Keys{d} }

// A KeyTx is a transaction that changes keys. It is used by one goroutine, and only
// within InTx.
type KeyTx struct {
	*store.Tx
	By store.Author

	touched []string // hashes of keys to be delivered to the gateways
}

// Touched adds keys that are delivered to the gateways after the transaction.
func (w *KeyTx) Touched(hashes ...string) { w.touched = append(w.touched, hashes...) }

// InTx runs work in one transaction, and then delivers the changed keys to the gateways
// without delay.
func (k *Keys) InTx(ctx context.Context, by store.Author, work func(*KeyTx) error) error {
	var touched []string
	err := k.d.Store.InTx(ctx, func(tx *store.Tx) error {
		w := &KeyTx{Tx: tx, By: by}
		err := work(w)
		touched = w.touched
		return err
	})
	if err != nil {
		return err
	}
	for _, hash := range touched {
		k.d.Deliver(hash)
	}
	return nil
}

// A Grant is a credential to be issued to a developer.
type Grant struct {
	Developer   store.Requester
	Request     string   // id of the key request; "" for none
	Policies    []string // at least one
	Password    *Password
	Client      string // id of an OAuth client, which has tokens in place of a key; "" for none
	JWTSecret   string // shared secret or public key of the developer; "" for none
	Certificate string // id of the client's certificate, which the key is called by; "" for none
	MetaData    map[string]json.RawMessage
}

// Issued is a credential that was issued.
type Issued struct {
	model.Credential
	Hash string // that the key is stored under
}

// Issue issues a credential. The transaction must have locked the developer's row.
func (k *Keys) Issue(ctx context.Context, w *KeyTx, g *Grant) (Issued, error) {
	if err := k.checkCount(ctx, w, g.Developer.ID); err != nil {
		return Issued{}, err
	}
	policies, err := k.lockPolicies(ctx, w, g.Policies, g.Policies)
	if err != nil {
		return Issued{}, err
	}
	txKeys := &keyStore{work: w, fresh: true}
	service, err := k.service(ctx, txKeys, policies)
	if err != nil {
		return Issued{}, err
	}
	session, user := g.session(w.By.Org)
	var made keys.Issued
	if g.Client != "" {
		made, err = service.CreateClient(ctx, g.Client, session)
	} else {
		made, err = service.Create(ctx, user, session, false)
	}
	if err != nil {
		return Issued{}, faultOf(err)
	}
	issued := Issued{Credential: model.Credential{RawKey: made.Key}, Hash: txKeys.made}
	if g.Password != nil {
		issued.Credential = model.Credential{RawKey: user, Password: g.Password.plain}
	}
	owned := store.KeyOwnership{KeyHash: issued.Hash, OrgID: w.By.Org, DeveloperID: g.Developer.ID, RequestID: g.Request, Policies: g.Policies}
	if err := w.Tx.SetKeyOwner(ctx, &owned); err != nil {
		return Issued{}, err
	}
	return issued, k.emit(ctx, w, model.KeyCreated, &owned)
}

// checkCount refuses one key more than a developer may have.
func (k *Keys) checkCount(ctx context.Context, w *KeyTx, developer string) error {
	n, err := w.Reader().CountDeveloperKeys(ctx, w.By.Org, developer)
	if err == nil && n >= MaxKeys {
		err = conflict(fmt.Sprintf("The developer has %d keys, which is the most; revoke one first", n))
	}
	return err
}

// session returns the session of a new credential, and the name of its user, "" for a
// key.
func (g *Grant) session(org string) (s *definition.Session, user string) {
	s = &definition.Session{
		OrgID: org, Alias: g.Developer.Email, ApplyPolicies: slices.Clone(g.Policies),
		MetaData: map[string]json.RawMessage{metaDeveloper: quoted(g.Developer.ID)},
	}
	for name, value := range g.MetaData {
		if s.MetaData[name] == nil {
			s.MetaData[name] = value
		}
	}
	if g.Request != "" {
		s.MetaData[metaRequest] = quoted(g.Request)
	}
	if g.Password != nil {
		user = "user-" + rest.RandomText(letters, 12)
		s.Alias = user // the name is stored nowhere else
		s.BasicAuth = g.Password.stored()
		return s, user
	}
	if g.JWTSecret != "" || g.Certificate != "" {
		s.Extra = &definition.Extra{Certificate: g.Certificate}
	}
	if g.JWTSecret != "" {
		s.Extra.JWT = &jwt.Key{Secret: g.JWTSecret}
	}
	return s, ""
}

func quoted(text string) json.RawMessage {
	b, _ := json.Marshal(text) // a string can always be encoded
	return b
}

// A Password is a generated password.
type Password struct{ plain, hash string }

// NewPassword generates and hashes a password. Hashing is slow: it must not be called
// within a transaction.
func (k *Keys) NewPassword(ctx context.Context) (*Password, error) {
	if k.d.Options.Passwords == nil {
		return nil, conflict("No users can be made here; the entry's auth_type must be authToken")
	}
	p := &Password{plain: rest.RandomText(letters, 32)}
	var err error
	if p.hash, err = k.d.Options.Passwords.Hash(ctx, p.plain); err != nil {
		return nil, faultOf(err)
	}
	return p, nil
}

func (p *Password) stored() *definition.BasicAuth {
	return &definition.BasicAuth{Password: p.hash, HashType: string(password.Argon2id)}
}

// letters is the alphabet of names and passwords, without the ambiguous 0 and 1.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ23456789"

// keyEvent is the data of an event about a key.
type keyEvent struct {
	ID        string   `json:"key_id"`
	Developer string   `json:"developer_id"`
	Request   string   `json:"request_id,omitempty"`
	Policies  []string `json:"policies"`
}

func (k *Keys) emit(ctx context.Context, w *KeyTx, kind string, o *store.KeyOwnership) error {
	return k.d.Events.Emit(ctx, w.Tx, model.Event{
		Org: o.OrgID, Developer: o.DeveloperID, Type: kind,
		Data: keyEvent{ID: k.PublicID(o.KeyHash), Developer: o.DeveloperID, Request: o.RequestID, Policies: o.Policies},
	})
}
