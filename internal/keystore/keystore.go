// Package keystore holds sessions by hashed key, for all gateways together:
// in process, in a file, or in Valkey.
package keystore

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition"
)

// The errors that callers branch on.
var (
	// ErrNotFound is proof that there is no such key.
	ErrNotFound = errors.New("no such key")

	// ErrUnavailable says that nothing is known: the store could not be asked,
	// or what it holds cannot be read.
	ErrUnavailable = errors.New("key store unavailable")

	// ErrRefilling says that nothing is known because the store lost its data
	// and an admin has not yet filled it again. It is an ErrUnavailable.
	ErrRefilling = fmt.Errorf("%w: it lost its data and is being filled again", ErrUnavailable)

	// ErrUnreadable says that the store answers, and that what it holds for one
	// key is no session. It is an ErrUnavailable.
	ErrUnreadable = fmt.Errorf("%w: what it holds is no session", ErrUnavailable)
)

// A Store holds sessions by key hash. Sessions are shared: neither the store
// nor its callers change one after Put or Get. It is safe for concurrent use.
type Store interface {
	// Get returns the session of a key. ErrNotFound is proof of absence;
	// ErrUnavailable (wrapped) says that nothing is known.
	Get(ctx context.Context, keyHash string) (*definition.Session, error)

	// Put stores a session; once it returned nil, the write survives a crash
	// as far as the store promises.
	Put(ctx context.Context, keyHash string, s *definition.Session) error

	// Delete removes a session, or returns ErrNotFound.
	Delete(ctx context.Context, keyHash string) error

	// List returns about count hashes, in no order, and the cursor to go on
	// from; "" starts, and "" returned ends. Every session that is there all
	// the while is listed, some perhaps twice.
	List(ctx context.Context, cursor string, count int) (hashes []string, next string, err error)

	// Watch calls changed with the hash of every session that anyone writes or
	// deletes, and with "" when some may have been missed, until ctx ends; that
	// is its only error. It calls with "" once when it begins to see changes.
	// Calls do not overlap, may repeat, and hold others back while they run;
	// none comes after Watch has returned.
	Watch(ctx context.Context, changed func(keyHash string)) error
}
