package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/admin/store/db"
)

// A KeyPosition names one change of a key: those up to it were seen. The random part
// distinguishes it from a change with the same number in a database that was restored.
type KeyPosition struct {
	Seq   int64
	Nonce string
}

// String returns the position as text, "" for the zero value.
func (p KeyPosition) String() string {
	if p == (KeyPosition{}) {
		return ""
	}
	return strconv.FormatInt(p.Seq, 10) + "." + p.Nonce
}

// ParseKeyPosition parses what String returned.
func ParseKeyPosition(text string) (KeyPosition, error) {
	if text == "" {
		return KeyPosition{}, nil
	}
	number, nonce, ok := strings.Cut(text, ".")
	seq, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || nonce == "" || len(nonce) > 64 {
		return KeyPosition{}, fmt.Errorf("position %.40q: use one that the admin returned", text)
	}
	return KeyPosition{Seq: seq, Nonce: nonce}, nil
}

// ErrUnknownPosition reports that the database does not have a change: it is another
// database, or an earlier state of it, or the change was long ago.
var ErrUnknownPosition = errors.New("the change of a key is not known")

// A ChangedKey is the hash of a key that was created, changed or deleted.
type ChangedKey struct {
	KeyPosition
	Hash string
}

// LastKeyChange returns the position of the last change.
func (s *Store) LastKeyChange(ctx context.Context) (KeyPosition, error) {
	row, err := s.queries.LastKeyChange(ctx)
	return KeyPosition{Seq: row.Seq, Nonce: row.Nonce}, translate(err)
}

// KeyChangesAfter returns up to most changes of keys of all organisations after a
// position, in their order. It returns ErrUnknownPosition if the position is unknown.
func (s *Store) KeyChangesAfter(ctx context.Context, after KeyPosition, most int) ([]ChangedKey, error) {
	rows, err := s.queries.KeyChangesFrom(ctx, db.KeyChangesFromParams{Seq: after.Seq, Max: int32(min(most, 100_000)) + 1})
	if err != nil {
		return nil, translate(err)
	}
	if len(rows) == 0 || rows[0].Seq != after.Seq || rows[0].Nonce != after.Nonce {
		return nil, ErrUnknownPosition
	}
	changes := make([]ChangedKey, 0, len(rows)-1)
	for _, row := range rows[1:] {
		changes = append(changes, ChangedKey{KeyPosition{Seq: row.Seq, Nonce: row.Nonce}, row.KeyHash})
	}
	return changes, nil
}

// DropKeyChanges deletes changes of more than a day ago, except for the last one.
func (s *Store) DropKeyChanges(ctx context.Context) error {
	return translate(s.queries.DropKeyChanges(ctx))
}

// ExistingKeys returns those of the hashes that name a key of any organisation.
func (s *Store) ExistingKeys(ctx context.Context, hashes []string) ([]string, error) {
	found, err := s.queries.ExistingKeys(ctx, hashes)
	return found, translate(err)
}

// HastenDeliveries makes all deliveries due that were put off because the key store did
// not answer.
func (s *Store) HastenDeliveries(ctx context.Context) error {
	return translate(s.queries.HastenOutbox(ctx))
}

// PutGatewayKeys records the number of the last change of a key that a gateway has
// applied.
func (s *Store) PutGatewayKeys(ctx context.Context, name string, seq int64) error {
	return translate(s.queries.PutGatewayKeys(ctx, db.PutGatewayKeysParams{Name: name, KeysSeq: seq}))
}
