package keys

import (
	"errors"

	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/password"
)

// What callers answer in their own way. Beside these, Validate's
// *definition.Problems come back as they are, and a store or counter that is away
// as keystore.ErrUnavailable or counter.ErrUnavailable.
var (
	// ErrNotFound says that there is no such key.
	ErrNotFound = keystore.ErrNotFound

	// ErrExists says that somebody made the key at the same moment.
	ErrExists = errors.New("there is such a key already")

	// ErrChanged says that somebody rotated the key at the same moment.
	ErrChanged = errors.New("the key was rotated at the same moment; try again")

	// ErrMaster refuses a key that could call every API.
	ErrMaster = errors.New("keys must have at least one Access Rights record set")

	// ErrBusy says that too many passwords were being hashed.
	ErrBusy = password.ErrBusy

	// ErrNotHashed refuses to look for a hash where keys are stored in clear.
	ErrNotHashed = errors.New("key requested by hash but key hashing is not enabled")
)

func isAbsent(err error) bool { return errors.Is(err, ErrNotFound) }

// PolicyError says that the policies of a key cannot be applied.
type PolicyError struct{ Cause error }

// Error is the reason, in words that callers show.
func (e *PolicyError) Error() string { return e.Cause.Error() }

// Unwrap returns the error of package rights.
func (e *PolicyError) Unwrap() error { return e.Cause }

// CustomError says that an id cannot be that of a key.
type CustomError struct{ Reason string }

// Error says what would be right.
func (e *CustomError) Error() string { return "key id " + e.Reason }

// RotationError says why a key cannot have a successor.
type RotationError struct{ Reason string }

// Error says what to do instead.
func (e *RotationError) Error() string { return e.Reason }
