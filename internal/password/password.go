// Package password hashes passwords for storage, and checks passwords against stored
// hashes. A hash takes tens of milliseconds and megabytes by design, so a Hasher makes
// only a few at once.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// MaxLength is the longest password, in bytes.
const MaxLength = 1024

// Costs of new hashes: 19 MiB and two passes, about 40 ms of one CPU for every guess.
const (
	usualMemory = 19 << 10 // KiB
	usualPasses = 2
	usualLanes  = 1
	saltSize    = 16
	sumSize     = 32
)

// ErrBusy means that too many passwords were being hashed to begin another one in
// time.
var ErrBusy = errors.New("too many passwords are being checked")

// A Hasher makes and checks hashes, a few at once. It is safe for concurrent use.
type Hasher struct {
	slots chan struct{} // one for each hash in progress
	queue chan struct{} // one for each caller, including those that wait
	wait  time.Duration
}

// NewHasher returns a Hasher that makes atOnce hashes at a time and lets waiting
// callers wait, each no longer than wait.
func NewHasher(atOnce, waiting int, wait time.Duration) *Hasher {
	return &Hasher{slots: make(chan struct{}, atOnce), queue: make(chan struct{}, atOnce+waiting), wait: wait}
}

// Hash returns the hash of a password with a new salt. It returns ErrBusy if it could
// not begin in time, or ctx's error.
func (h *Hasher) Hash(ctx context.Context, plain string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	made := argon{memory: usualMemory, passes: usualPasses, lanes: usualLanes, salt: make([]byte, saltSize)}
	rand.Read(made.salt) // never fails: the runtime ends the process first
	made.sum = made.of([]byte(plain), sumSize)
	return made.String(), nil
}

// Verify reports whether plain is the password with the stored hash. A text that is
// not a hash takes as long and matches no password. It returns ErrBusy if it could not
// begin in time, or ctx's error.
func (h *Hasher) Verify(ctx context.Context, stored string, plain []byte) (bool, error) {
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	defer h.leave()
	if isBcrypt(stored) {
		return bcrypt.CompareHashAndPassword([]byte(stored), plain) == nil, nil
	}
	known, err := parseArgon(stored)
	if err != nil {
		decoy.of(plain, sumSize)
		return false, nil
	}
	return subtle.ConstantTimeCompare(known.of(plain, uint32(len(known.sum))), known.sum) == 1, nil
}

// decoy is hashed with if there is no stored hash.
var decoy = argon{memory: usualMemory, passes: usualPasses, lanes: usualLanes, salt: make([]byte, saltSize)}

// enter waits until another hash may begin.
func (h *Hasher) enter(ctx context.Context) error {
	select {
	case h.queue <- struct{}{}:
	default:
		return ErrBusy
	}
	timeout := time.NewTimer(h.wait)
	defer timeout.Stop()
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-timeout.C:
		<-h.queue
		return ErrBusy
	case <-ctx.Done():
		<-h.queue
		return fmt.Errorf("waiting to hash a password: %w", ctx.Err())
	}
}

func (h *Hasher) leave() {
	<-h.slots
	<-h.queue
}

// of returns the hash of a password under a's parameters and salt.
func (a *argon) of(plain []byte, size uint32) []byte {
	return argon2.IDKey(plain, a.salt, a.passes, a.memory, a.lanes, size)
}
