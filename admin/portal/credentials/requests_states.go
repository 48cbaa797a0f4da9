package credentials

import (
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// State is the state of a key request.
type State string

// The states. Requests begin as Pending.
const (
	Pending  State = "pending"
	Approved State = "approved"
	Rejected State = "rejected"
)

// move is a transition of a request.
type move string

const (
	moveChange  move = "changed"
	moveApprove move = "approved"
	moveReject  move = "rejected"
	moveDelete  move = "deleted"
)

// moves are the permitted transitions of each state and the state that follows; "" is a
// deleted request. Deleting an approved request does not change the key.
var moves = map[State]map[move]State{
	Pending:  {moveChange: Pending, moveApprove: Approved, moveReject: Rejected, moveDelete: ""},
	Approved: {moveDelete: ""},
	Rejected: {moveDelete: ""},
}

// nextState returns the state after a move. The error names the state that forbids it and
// the version of the request.
func nextState(r *store.KeyRequest, m move) (State, error) {
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
