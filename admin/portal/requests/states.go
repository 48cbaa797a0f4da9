package requests

import (
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	kept "github.com/sluicegate/sluice/admin/store/requests"
)

// State is how far a key request is.
type State string

// The states. Pending is the first.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Rejected State = "rejected"
)

// move is something that can be done to a request.
type move string

const (
	change  move = "changed"
	approve move = "approved"
	reject  move = "rejected"
	remove  move = "deleted"
)

// moves says what can be done in each state, and which state comes of it; "" is the
// end of the request. What is not listed is refused. Deleting an approved request
// leaves the key as it is: that has calls of its own.
var moves = map[State]map[move]State{
	Pending:  {change: Pending, approve: Approved, reject: Rejected, remove: ""},
	Approved: {remove: ""},
	Rejected: {remove: ""},
}

// after returns the state that a move leads to; the error says which state forbids
// it, and which version of the request has that.
func after(r *kept.Request, m move) (State, error) {
	next, ok := moves[State(r.State)][m]
	if ok {
		return next, nil
	}
	fault := rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("The key request is %s, at version %d, and cannot be %s any more", r.State, r.Version, m))
	fault.ETag = rest.ETagOf(r.Version)
	return "", fault
}

func isState(text string) bool {
	return slices.Contains([]State{Pending, Approved, Rejected}, State(text))
}
