package credentials

import (
	"errors"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/keys"
)

// PolicyError reports policies that keys cannot have.
type PolicyError struct{ Problems []string }

// Error lists the problems.
func (e *PolicyError) Error() string { return strings.Join(e.Problems, "; ") }

// Refused implements rest.Refusal.
func (e *PolicyError) Refused() (status int, message string, problems []string) {
	return fasthttp.StatusBadRequest, "Validation failed: " + e.Error(), e.Problems
}

// CheckPolicies refuses policies that do not exist or are not active; the error is
// *PolicyError.
func CheckPolicies(found map[string]store.RequestedPolicy, given []string) error {
	var problems []string
	for _, id := range given {
		p, ok := found[id]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("policy %q does not exist", id))
		case p.State != "active":
			problems = append(problems, fmt.Sprintf("policy %q is in state %s: only active ones are given to keys", id, p.State))
		}
	}
	if problems != nil {
		return &PolicyError{problems}
	}
	return nil
}

func conflict(message string) error { return rest.Refuse(fasthttp.StatusConflict, message) }

// Missing is the message about a key that the developer does not have.
const Missing = "Could not retrieve key detail."

// faultOf turns refusals of the rules of keys into answers.
func faultOf(err error) error {
	if policy, ok := errors.AsType[*keys.PolicyError](err); ok {
		return &PolicyError{[]string{"apply_policies: " + policy.Error()}}
	}
	if custom, ok := errors.AsType[*keys.CustomError](err); ok {
		return rest.BadRequest(custom.Error())
	}
	if rotation, ok := errors.AsType[*keys.RotationError](err); ok {
		return rest.BadRequest("Key cannot be rotated: " + rotation.Error())
	}
	switch {
	case errors.Is(err, keys.ErrNotFound):
		return rest.NotFound(Missing)
	case errors.Is(err, keys.ErrExists):
		return conflict("There is a key of that name already")
	case errors.Is(err, keys.ErrChanged):
		return conflict("The key was rotated at the same moment, please try again")
	case errors.Is(err, keys.ErrBusy):
		return rest.Unavailable("Too many passwords are being hashed; try again")
	case errors.Is(err, keys.ErrMaster):
		return rest.BadRequest("Validation failed", "apply_policies: a key needs at least one policy with access rights")
	}
	return err
}
