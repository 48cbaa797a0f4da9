package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// Key is a stored key: the hash, the session as JSON, and columns derived from it.
type Key = db.Key

// KeyChange is a change of one key.
type KeyChange struct {
	Hash    string
	Session *definition.Session // nil: the key is deleted
	Reset   []string            // counters to be reset
	New     bool                // the key must not exist yet; otherwise it must
	Action  string              // for the audit log; "": created, updated or deleted

	Successor string   // hash of a further key of the session, to be inserted; "" for none
	Gone      []string // hashes of further keys, to be deleted

	Found *definition.Session // session that the change was made for; other keys by now are a Stale conflict; nil: any
	Have  int64               // version that the change was made for; another one is a Stale conflict; 0: any

	Shown func(hash string) string // what the audit log shows in place of a hash, which may be the key itself; nil: the hash
}

// NewKeyChange returns the change that the rules of keys decided on. Shown is as in
// KeyChange.
func NewKeyChange(c keys.Change, shown func(hash string) string) KeyChange {
	return KeyChange{
		Hash: c.Hash, Session: c.Session, Reset: c.Reset, New: c.New, Successor: c.Successor, Gone: c.Gone, Found: c.Found, Shown: shown,
	}
}

// KeyError returns the error of package keys that an error of the store stands for, or
// else the error itself.
func KeyError(err error) error {
	conflict, ok := errors.AsType[*ConflictError](err)
	switch {
	case errors.Is(err, ErrNotFound):
		return keys.ErrNotFound
	case ok && conflict.Kind == TakenID:
		return keys.ErrExists
	case ok && conflict.Kind == Stale && conflict.Current == 0:
		return keys.ErrChanged
	}
	return err
}

// SessionOf returns the session of a stored key.
func SessionOf(k *Key) (*definition.Session, error) {
	session := new(definition.Session)
	if err := json.Unmarshal(k.Body, session); err != nil {
		// Not the hash: where keys are stored in clear it is the key.
		return nil, fmt.Errorf("reading the session of a key of organisation %s, alias %q: %w", k.OrgID, k.Alias, err)
	}
	return session, nil
}

// PolicySet returns the policies that are stored as JSON.
func PolicySet(bodies [][]byte) (*definition.PolicySet, error) {
	policies := make([]*definition.Policy, 0, len(bodies))
	for _, body := range bodies {
		p := new(definition.Policy)
		if err := json.Unmarshal(body, p); err != nil {
			return nil, fmt.Errorf("reading a policy: %w", err)
		}
		policies = append(policies, p)
	}
	return definition.NewPolicySet(policies), nil
}

// Others returns the hashes of the further keys that a change inserts or deletes.
func (c *KeyChange) Others() []string {
	if c.Successor == "" {
		return c.Gone
	}
	return append(slices.Clone(c.Gone), c.Successor)
}

// KeyFilter filters a list of keys. Empty members do not filter.
type KeyFilter struct {
	Prefix   string   // of the alias, in any case, or of the hash
	API      string   // named by the key itself, or by one of Policies
	Policies []string // those that name API
}

// now is the time of rows that the database does not stamp.
func now() time.Time { return time.Now().UTC() }

// KeyByHash returns an organisation's key.
func (s *Store) KeyByHash(ctx context.Context, org, hash string) (Key, error) {
	row, err := s.queries.KeyByHash(ctx, db.KeyByHashParams{OrgID: org, KeyHash: hash})
	return row, translate(err)
}

// SessionAnywhere returns the session of a key of any organisation.
func (s *Store) SessionAnywhere(ctx context.Context, hash string) (*definition.Session, error) {
	body, err := s.queries.KeyAnywhere(ctx, hash)
	if err != nil {
		return nil, translate(err)
	}
	return decodeSession(hash, body)
}

func decodeSession(hash string, body []byte) (*definition.Session, error) {
	session := new(definition.Session)
	if err := json.Unmarshal(body, session); err != nil {
		return nil, fmt.Errorf("reading the session of key %.12s: %w", hash, err)
	}
	return session, nil
}

// ListKeys returns one page of an organisation's keys, by hash, and their total number. A
// page has at most 1,000.
func (s *Store) ListKeys(ctx context.Context, org string, f KeyFilter, page Page) ([]Key, int64, error) {
	if f.Prefix != "" || f.API != "" {
		return s.findKeys(ctx, org, f, page)
	}
	total, err := s.queries.CountKeys(ctx, org)
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListKeys(ctx, db.ListKeysParams{OrgID: org, Skip: page.offset(), Max: page.bounded()})
	return rows, total, translate(err)
}

// findKeys is ListKeys with a filter.
func (s *Store) findKeys(ctx context.Context, org string, f KeyFilter, page Page) ([]Key, int64, error) {
	prefix := ""
	if f.Prefix != "" {
		prefix = LikePrefix(strings.ToLower(f.Prefix))
	}
	rows, err := s.queries.FindKeys(ctx, db.FindKeysParams{
		OrgID: org, Prefix: prefix, API: f.API, Policies: append([]string{}, f.Policies...), Skip: page.offset(), Max: page.bounded(),
	})
	found, total := make([]Key, 0, len(rows)), int64(0)
	for _, row := range rows {
		found, total = append(found, row.Key), row.Total
	}
	if err == nil && len(rows) == 0 && page.Skip > 0 { // beyond the last page, where no row has the total
		_, total, err = s.findKeys(ctx, org, f, Page{Max: 1})
	}
	return found, total, translate(err)
}

// likeEscapes escapes a text for a LIKE pattern.
var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// PoliciesNaming returns the ids of an organisation's policies that name an API.
func (s *Store) PoliciesNaming(ctx context.Context, org, api string) ([]string, error) {
	rows, err := s.queries.PoliciesNaming(ctx, db.PoliciesNamingParams{OrgID: org, API: api})
	if err != nil {
		return nil, translate(err)
	}
	ids := make([]string, 0, len(rows))
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids, nil
}

// KeyHashes returns up to count hashes of an organisation after another one, in order.
func (s *Store) KeyHashes(ctx context.Context, org, after string, count int) ([]string, error) {
	hashes, err := s.queries.KeyHashes(ctx, db.KeyHashesParams{
		OrgID: org, After: after, Max: Page{Max: count}.bounded(),
	})
	return hashes, translate(err)
}

// LegacyHashes returns the identities of an organisation's keys that are legacy hashes.
func (s *Store) LegacyHashes(ctx context.Context, org string) ([]string, error) {
	hashes, err := s.queries.LegacyHashes(ctx, org)
	return slices.DeleteFunc(hashes, func(hash string) bool { return !credential.IsLegacy(hash) }), translate(err)
}

// CountLegacyKeys returns how many of an organisation's keys are valid under legacy
// hashes, by the name of the hash.
func (s *Store) CountLegacyKeys(ctx context.Context, org string) (map[string]int64, error) {
	rows, err := s.queries.CountLegacyKeys(ctx, org)
	counts := make(map[string]int64)
	for _, row := range rows {
		if a, ok := credential.LegacyOf(strings.Repeat("0", int(row.Digits))); ok {
			counts[a.String()] = row.Keys
		}
	}
	return counts, translate(err)
}

// MaskedKey returns the key whose legacy hash has the masked form shown.
func (s *Store) MaskedKey(ctx context.Context, org, shown string) (Key, error) {
	if len(shown) != len(credential.Masked("")) {
		return Key{}, ErrNotFound
	}
	hashes, err := s.LegacyHashes(ctx, org)
	if err != nil {
		return Key{}, err
	}
	for _, hash := range hashes {
		if credential.Masked(hash) == shown {
			return s.KeyByHash(ctx, org, hash)
		}
	}
	return Key{}, ErrNotFound
}

// CommitKey changes one key: the row, the audit log and the outbox of the key store in
// one transaction.
func (s *Store) CommitKey(ctx context.Context, by Author, c KeyChange) error {
	return s.inTx(ctx, func(q *db.Queries) error { return commitKey(ctx, q, by, &c) })
}

func commitKey(ctx context.Context, q *db.Queries, by Author, c *KeyChange) error {
	owner, err := lockOwner(ctx, q, c)
	if err != nil {
		return err
	}
	old, err := q.LockKey(ctx, db.LockKeyParams{OrgID: by.Org, KeyHash: c.Hash})
	absent := errors.Is(err, pgx.ErrNoRows)
	switch {
	case err != nil && !absent:
		return err
	case absent && !c.New:
		return ErrNotFound
	case !absent && c.New:
		return &ConflictError{Kind: TakenID}
	}
	if err := unchanged(&old, c); err != nil {
		return err
	}
	if err := writeOthers(ctx, q, by, *c); err != nil {
		return err
	}
	entry, err := writeOwned(ctx, q, by, *c, owner)
	if err != nil {
		return err
	}
	entry.Before = old.Body
	if c.Action != "" {
		entry.Action = c.Action
	}
	if err := c.audit(ctx, q, by, entry); err != nil {
		return err
	}
	reset := slices.Clone(c.Reset)
	if reset == nil {
		reset = []string{}
	}
	return q.PutOutbox(ctx, db.PutOutboxParams{ID: c.Hash, Reset: reset})
}

// audit adds a change of a key, which may be stored in clear, to the audit log.
func (c *KeyChange) audit(ctx context.Context, q *db.Queries, by Author, d AuditEntry) error {
	if c.Shown == nil {
		return audit(ctx, q, by, d)
	}
	d.ID = c.Shown(d.ID)
	var err error
	if d.Before, err = c.shown(d.Before); err != nil {
		return err
	}
	if d.After, err = c.shown(d.After); err != nil {
		return err
	}
	return audit(ctx, q, by, d)
}

// shown returns a session for the audit log, with the hashes of its further keys
// replaced.
func (c *KeyChange) shown(body []byte) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	session, err := decodeSession(c.Shown(c.Hash), body)
	if err != nil {
		return nil, err
	}
	if session.Extra == nil || len(session.Extra.Keys) == 0 && session.Extra.SuccessorOf == "" {
		return body, nil
	}
	for i := range session.Extra.Keys {
		session.Extra.Keys[i].Hash = c.Shown(session.Extra.Keys[i].Hash)
	}
	session.Extra.SuccessorOf = c.Shown(session.Extra.SuccessorOf)
	return encode(session)
}

// unchanged refuses a change if the key is at another version than the caller saw, or was
// rotated since it was read.
func unchanged(old *db.Key, c *KeyChange) error {
	if c.Have != 0 && old.Version != c.Have {
		return &ConflictError{Kind: Stale, Current: old.Version}
	}
	if c.Found == nil {
		return nil
	}
	now := new(definition.Session)
	if err := json.Unmarshal(old.Body, now); err != nil {
		return fmt.Errorf("reading the session of key %.12s: %w", c.Hash, err)
	}
	if !definition.SameCredentials(now, c.Found) {
		return &ConflictError{Kind: Stale}
	}
	return nil
}

// writeOthers inserts and deletes the further keys of a key.
func writeOthers(ctx context.Context, q *db.Queries, by Author, c KeyChange) error {
	for _, hash := range c.Gone {
		if err := q.DeleteKey(ctx, db.DeleteKeyParams{OrgID: by.Org, KeyHash: hash}); err != nil {
			return err
		}
	}
	if c.Successor != "" {
		row, err := keyRow(by.Org, c.Successor, definition.NewSuccessor(c.Hash, by.Org))
		if err != nil {
			return err
		}
		if err := insertKey(ctx, q, &row); err != nil {
			return err
		}
	}
	for _, hash := range c.Others() {
		if err := q.PutOutbox(ctx, db.PutOutboxParams{ID: hash, Reset: []string{}}); err != nil {
			return err
		}
	}
	return nil
}

func insertKey(ctx context.Context, q *db.Queries, row *db.Key) error {
	return q.InsertKey(ctx, db.InsertKeyParams{
		KeyHash: row.KeyHash, OrgID: row.OrgID, Alias: row.Alias, Active: row.Active,
		ExpiresAt: row.ExpiresAt, APIs: row.APIs, Policies: row.Policies, Body: row.Body, SuccessorOf: row.SuccessorOf,
	})
}

// lockOwner locks and returns the developer who has a key, "" for none. The developer is
// locked before the key, as the subscriptions of one key depend on the other keys.
func lockOwner(ctx context.Context, q *db.Queries, c *KeyChange) (developer string, err error) {
	if c.New {
		return "", nil
	}
	developer, err = q.LockOwner(ctx, c.Hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return developer, err
}

// writeOwned is writeKey for a key that a developer may have. It updates the policies and
// subscriptions of the developer.
func writeOwned(ctx context.Context, q *db.Queries, by Author, c KeyChange, developer string) (AuditEntry, error) {
	if developer == "" {
		return writeKey(ctx, q, by, c)
	}
	entry, err := writeKey(ctx, q, by, c)
	if err != nil {
		return entry, err
	}
	if c.Session != nil {
		policies := append([]string{}, c.Session.Policies()...)
		err := q.SetDeveloperKeyPolicies(ctx, db.SetDeveloperKeyPoliciesParams{OrgID: by.Org, KeyHash: c.Hash, Policies: policies})
		if err != nil {
			return entry, err
		}
		if err := q.DropSubscriptions(ctx, db.DropSubscriptionsParams{KeyHash: c.Hash, Policies: policies}); err != nil {
			return entry, err
		}
	}
	return entry, q.RestoreSubscriptions(ctx, developer)
}

// writeKey inserts, updates or deletes the row of a key. New reports whether it exists.
func writeKey(ctx context.Context, q *db.Queries, by Author, c KeyChange) (AuditEntry, error) {
	entry := AuditEntry{Action: deleted, Kind: "key", ID: c.Hash}
	if c.Session == nil {
		if err := q.DeleteKey(ctx, db.DeleteKeyParams{OrgID: by.Org, KeyHash: c.Hash}); err != nil {
			return entry, err
		}
		// Also those added since the key was read, and the tokens of a client.
		return entry, q.DropSuccessors(ctx, db.DropSuccessorsParams{OrgID: by.Org, Identity: c.Hash})
	}
	row, err := keyRow(by.Org, c.Hash, c.Session)
	if err != nil {
		return entry, err
	}
	entry.After, entry.Action = row.Body, updated
	if c.New {
		entry.Action = created
		return entry, insertKey(ctx, q, &row)
	}
	_, err = q.UpdateKey(ctx, db.UpdateKeyParams{
		KeyHash: row.KeyHash, OrgID: row.OrgID, Alias: row.Alias, Active: row.Active,
		ExpiresAt: row.ExpiresAt, APIs: row.APIs, Policies: row.Policies, Body: row.Body,
	})
	return entry, err
}

// keyRow derives a key's columns from its session.
func keyRow(org, hash string, session *definition.Session) (db.Key, error) {
	stored := *session
	stored.OrgID = org
	body, err := encode(&stored)
	if err != nil {
		return db.Key{}, err
	}
	row := db.Key{
		KeyHash: hash, OrgID: org, Alias: session.Alias, Active: !session.IsInactive,
		APIs: sortedNames(session.AccessRights), Policies: session.Policies(), Body: body, SuccessorOf: session.SuccessorOf(),
	}
	if row.Policies == nil {
		row.Policies = []string{}
	}
	if session.Expires > 0 {
		at := time.Unix(min(session.Expires, latest), 0).UTC()
		row.ExpiresAt = &at
	}
	return row, nil
}

// latest is the end of the year 9999 in unix seconds, the latest expiry that is stored.
const latest = 253402300799
