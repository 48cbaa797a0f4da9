// Package keystore stores sessions by hashed key: in the process, in a file, or in a
// Valkey or Redis store that gateways share.
package keystore

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition"
)

var (
	// ErrNotFound means that there is no such key.
	ErrNotFound = errors.New("no such key")

	// ErrUnavailable means that it is unknown whether there is such a key: the store
	// could not be asked, or what it has cannot be read.
	ErrUnavailable = errors.New("key store unavailable")

	// ErrRefilling is an ErrUnavailable because the store lost its data and an admin has
	// not filled it again yet.
	ErrRefilling = fmt.Errorf("%w: it lost its data and is being filled again", ErrUnavailable)

	// ErrUnreadable is an ErrUnavailable because what the store has for a key is not a
	// session.
	ErrUnreadable = fmt.Errorf("%w: what it has is not a session", ErrUnavailable)
)

// A Store holds sessions by key hash. Sessions are shared: neither the store nor its
// callers change one after Put or Get. It is safe for concurrent use.
type Store interface {
	// Get returns the session of a key. The error is ErrNotFound or wraps
	// ErrUnavailable.
	Get(ctx context.Context, keyHash string) (*definition.Session, error)

	// Put stores a session. Once it has returned nil, the write is as durable as the
	// store promises.
	Put(ctx context.Context, keyHash string, s *definition.Session) error

	// Delete removes a session, or returns ErrNotFound.
	Delete(ctx context.Context, keyHash string) error

	// List returns about count hashes, in no order, and the cursor to continue from; ""
	// starts, and "" returned ends. Every session that exists all the time is listed,
	// perhaps more than once.
	List(ctx context.Context, cursor string, count int) (hashes []string, next string, err error)

	// Watch calls changed with the hash of every session that is written or deleted, by
	// any process, and with "" if changes may have been missed, until ctx ends, which is
	// its only error. It calls changed with "" once it sees changes. Calls do not
	// overlap, may repeat, and delay others while they run; none is made after Watch has
	// returned.
	Watch(ctx context.Context, changed func(keyHash string)) error
}
