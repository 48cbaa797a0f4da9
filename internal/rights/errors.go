package rights

import "fmt"

// MissingError means that the only policy of a key does not exist.
type MissingError struct{ Policy string }

// Error names the policy.
func (e *MissingError) Error() string { return fmt.Sprintf("policy not found: %q", e.Policy) }

// ForeignError means that a policy belongs to a different organisation than the key.
type ForeignError struct{ Policy string }

// Error names the policy.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("policy %q belongs to another organisation than the key", e.Policy)
}

// ConflictError means that limits per API and partitions are combined: in Policy, or
// if that is empty, in different policies of one key.
type ConflictError struct{ Policy string }

// Error says where they are combined.
func (e *ConflictError) Error() string {
	if e.Policy == "" {
		return "cannot apply multiple policies when some have per_api set and some are partitioned"
	}
	return fmt.Sprintf("cannot apply policy %q, which has per_api set and is partitioned", e.Policy)
}

// NoneError means that a key has policies, but no access rights result from them.
type NoneError struct{}

// Error returns a fixed text that callers compare.
func (*NoneError) Error() string { return "key has no valid policies to be applied" }
