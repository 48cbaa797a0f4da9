package rights

import "fmt"

// MissingError says that the only policy of a key does not exist.
type MissingError struct{ Policy string }

// Error names the policy.
func (e *MissingError) Error() string { return fmt.Sprintf("policy not found: %q", e.Policy) }

// ForeignError says that a policy belongs to another organisation than the key.
type ForeignError struct{ Policy string }

// Error names the policy.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("policy %q belongs to another organisation than the key", e.Policy)
}

// ConflictError says that limits per API and partitions meet: in Policy, or, when
// that is empty, in different policies of one key.
type ConflictError struct{ Policy string }

// Error says where they meet.
func (e *ConflictError) Error() string {
	if e.Policy == "" {
		return "cannot apply multiple policies when some have per_api set and some are partitioned"
	}
	return fmt.Sprintf("cannot apply policy %q, which has per_api set and is partitioned", e.Policy)
}

// NoneError says that a key carries policies and that no access rights come of
// them.
type NoneError struct{}

// Error is a fixed text that callers compare.
func (*NoneError) Error() string { return "key has no valid policies to be applied" }
