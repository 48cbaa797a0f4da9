// Package credentials is the life of what developers call with: issued, given
// other policies, rotated, revoked, always within a transaction that says whose
// they are.
package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/requests"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/password"
)

// The kinds of credentials, as auth_type of a catalogue's entry names them.
const (
	Token = "authToken" // a key
	Basic = "basic"     // a user's name and password
	OAuth = "oauth"     // a client's id and secret
)

// MaxKeys is how many keys a developer can have.
const MaxKeys = 1000

// Members of a session's meta data that say where a key comes from.
const (
	metaDeveloper = "developer_id"
	metaRequest   = "key_request_id"
)

// Events is told of what happens to keys, within the transaction in which it does.
type Events interface {
	Emit(ctx context.Context, tx *store.Tx, e record.Event) error
}

// Deps are what a Keeper works with. All are required.
type Deps struct {
	Store    *store.Store
	Counters counter.Counter // of the keys' quotas
	Naming   counter.Naming  // of Counters
	Options  keys.Options    // how keys are made; without Passwords there are no users
	Deliver  func(hash string)
	Events   Events
	Now      func() time.Time
	Log      *slog.Logger
}

// Keeper makes and changes credentials. It is safe for concurrent use.
type Keeper struct{ d Deps }

// New returns a Keeper.
func New(d Deps) *Keeper { return &Keeper{d} }

// A Work is one transaction that changes keys. It is used by one goroutine, and
// only within InTx.
type Work struct {
	*store.Tx
	By store.Author

	touched []string // hashes of keys that gateways are to learn of
}

// Touched notes a key that gateways are to learn of after the transaction.
func (w *Work) Touched(hashes ...string) { w.touched = append(w.touched, hashes...) }

// InTx runs work in one transaction, and brings the keys that it changed to the
// gateways without delay.
func (k *Keeper) InTx(ctx context.Context, by store.Author, work func(*Work) error) error {
	var touched []string
	err := k.d.Store.InTx(ctx, func(tx *store.Tx) error {
		w := &Work{Tx: tx, By: by}
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

// A Grant says what credential a developer is to get.
type Grant struct {
	Developer   requests.Requester
	Request     string   // id of the key request; "" for none
	Policies    []string // at least one
	Password    *Password
	Client      string // id of the OAuth client that it is to be, which has tokens in place of a key; "" for none
	JWTSecret   string // shared with the caller, or their public key; "" for none
	Certificate string // id of the client's certificate, which the key is called by; "" for none
	MetaData    map[string]json.RawMessage
}

// Issued is a credential that was made.
type Issued struct {
	record.Credential
	Hash string // that the key is stored under
}

// Issue makes a credential. Its transaction has locked the developer's row.
func (k *Keeper) Issue(ctx context.Context, w *Work, g *Grant) (Issued, error) {
	if err := k.room(ctx, w, g.Developer.ID); err != nil {
		return Issued{}, err
	}
	policies, err := k.wanted(ctx, w, g.Policies, g.Policies)
	if err != nil {
		return Issued{}, err
	}
	book := &ledger{work: w, fresh: true}
	service, err := k.service(ctx, book, policies)
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
	issued := Issued{Credential: record.Credential{RawKey: made.Key}, Hash: book.made}
	if g.Password != nil {
		issued.Credential = record.Credential{RawKey: user, Password: g.Password.plain}
	}
	owned := requests.Owned{KeyHash: issued.Hash, OrgID: w.By.Org, DeveloperID: g.Developer.ID, RequestID: g.Request, Policies: g.Policies}
	if err := requests.Own(ctx, w.Tx, &owned); err != nil {
		return Issued{}, err
	}
	return issued, k.emit(ctx, w, record.KeyCreated, &owned)
}

// room refuses one key too many.
func (k *Keeper) room(ctx context.Context, w *Work, developer string) error {
	n, err := requests.CountKeys(ctx, w.Queries, w.By.Org, developer)
	if err == nil && n >= MaxKeys {
		err = conflict(fmt.Sprintf("The developer has %d keys, which is the most; revoke one first", n))
	}
	return err
}

// session is what is stored of a new credential, and the name of its user, "" for
// a key.
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
		s.Alias = user // what is stored else does not tell the name
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
	b, _ := json.Marshal(text) // a string always can
	return b
}

// A Password is one that nobody chose.
type Password struct{ plain, hash string }

// NewPassword makes a password. It takes its time, and must not be called within a
// transaction.
func (k *Keeper) NewPassword(ctx context.Context) (*Password, error) {
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

// letters are those of names and passwords, without 0 and 1, which look like others.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ23456789"

// keyEvent is what events about keys hold.
type keyEvent struct {
	ID        string   `json:"key_id"`
	Developer string   `json:"developer_id"`
	Request   string   `json:"request_id,omitempty"`
	Policies  []string `json:"policies"`
}

func (k *Keeper) emit(ctx context.Context, w *Work, kind string, o *requests.Owned) error {
	return k.d.Events.Emit(ctx, w.Tx, record.Event{
		Org: o.OrgID, Developer: o.DeveloperID, Type: kind,
		Data: keyEvent{ID: k.PublicID(o.KeyHash), Developer: o.DeveloperID, Request: o.RequestID, Policies: o.Policies},
	})
}
