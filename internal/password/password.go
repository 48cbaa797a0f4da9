// Package password turns passwords into what may be stored of them, and holds
// passwords against that. A hash takes tens of milliseconds and megabytes by
// design, so that a Hasher makes few at once.
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

// What new hashes are made with: 19 MiB and two passes cost whoever guesses as
// much as whoever knows, some 40 ms of one processor.
const (
	usualMemory = 19 << 10 // KiB
	usualPasses = 2
	usualLanes  = 1
	saltSize    = 16
	sumSize     = 32
)

// ErrBusy says that too many passwords were being hashed to begin another one in
// time.
var ErrBusy = errors.New("too many passwords are being checked")

// A Hasher makes and checks hashes, a few at once. It is safe for concurrent use.
type Hasher struct {
	slots chan struct{} // one for each hash that is being made
	queue chan struct{} // one for each caller, those who wait included
	wait  time.Duration
}

// NewHasher returns a Hasher that makes atOnce hashes at a time and lets waiting
// callers wait for their turn, each no longer than wait.
func NewHasher(atOnce, waiting int, wait time.Duration) *Hasher {
	return &Hasher{slots: make(chan struct{}, atOnce), queue: make(chan struct{}, atOnce+waiting), wait: wait}
}

// Hash returns what to store of a password, with a salt of its own. It returns
// ErrBusy when there was no turn in time, or ctx's error.
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

// Verify tells whether plain is the password of which stored was kept. What is
// no hash is nobody's password: the answer then takes as long and is no. It
// returns ErrBusy when there was no turn in time, or ctx's error.
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

// decoy is hashed with in place of what is not there.
var decoy = argon{memory: usualMemory, passes: usualPasses, lanes: usualLanes, salt: make([]byte, saltSize)}

// enter waits for a turn.
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

// of returns the sum of a password under a's parameters and salt.
func (a *argon) of(plain []byte, size uint32) []byte {
	return argon2.IDKey(plain, a.salt, a.passes, a.memory, a.lanes, size)
}
