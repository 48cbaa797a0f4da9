package keys

import (
	"errors"

	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/password"
)

// Errors that callers distinguish. In addition, Validate's *definition.Problems are
// returned unchanged, and a store or counter that is away is keystore.ErrUnavailable
// or counter.ErrUnavailable.
var (
	// ErrNotFound means that the key does not exist.
	ErrNotFound = keystore.ErrNotFound

	// ErrExists means that the key was created at the same time.
	ErrExists = errors.New("there is such a key already")

	// ErrChanged means that the key was rotated at the same time.
	ErrChanged = errors.New("the key was rotated at the same moment; try again")

	// ErrMaster refuses a key that could call every API.
	ErrMaster = errors.New("keys must have at least one Access Rights record set")

	// ErrBusy means that too many passwords were being hashed.
	ErrBusy = password.ErrBusy

	// ErrNotHashed refuses a hash where keys are stored in clear.
	ErrNotHashed = errors.New("key requested by hash but key hashing is not enabled")
)

func isAbsent(err error) bool { return errors.Is(err, ErrNotFound) }

// PolicyError means that the policies of a key cannot be applied.
type PolicyError struct{ Cause error }

// Error returns the reason, which is shown to users.
func (e *PolicyError) Error() string { return e.Cause.Error() }

// Unwrap returns the error of package rights.
func (e *PolicyError) Unwrap() error { return e.Cause }

// CustomError means that an id cannot be that of a key.
type CustomError struct{ Reason string }

// Error returns what a valid id is.
func (e *CustomError) Error() string { return "key id " + e.Reason }

// RotationError means that a key cannot have a successor.
type RotationError struct{ Reason string }

// Error returns the reason and what to do instead.
func (e *RotationError) Error() string { return e.Reason }
