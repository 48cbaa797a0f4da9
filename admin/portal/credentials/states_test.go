package credentials

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

func TestNoSequenceOfMovesApprovesTwiceOrBringsARequestBack(t *testing.T) {
	all := []move{moveChange, moveApprove, moveReject, moveDelete}
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := &store.KeyRequest{State: string(Pending), Version: 1}
		approved, decided, gone := 0, false, false
		for range 12 {
			m := all[random.IntN(len(all))]
			before := r.State
			next, err := nextState(r, m)
			if err != nil {
				fault, _ := rest.FaultOf(err)
				if fault.Status != 409 || fault.ETag != rest.ETagOf(r.Version) {
					t.Fatalf("seed %d: %s of %s is refused with %+v", seed, m, before, fault)
				}
				if before == string(Pending) {
					t.Fatalf("seed %d: %s of a pending request is refused", seed, m)
				}
				continue
			}
			switch {
			case gone:
				t.Fatalf("seed %d: %s of a deleted request", seed, m)
			case decided && m != moveDelete:
				t.Fatalf("seed %d: %s of a request that is %s", seed, m, before)
			}
			if m == moveApprove {
				approved++
			}
			decided = decided || next == Approved || next == Rejected
			gone = next == ""
			if gone {
				break
			}
			if moves[next] == nil {
				t.Fatalf("seed %d: state %q is not in the table", seed, next)
			}
			r.State, r.Version = string(next), r.Version+1
		}
		if approved > 1 {
			t.Fatalf("seed %d: approved %d times", seed, approved)
		}
	}
}

func TestUnknownStatesPermitNothing(t *testing.T) {
	for _, m := range []move{moveChange, moveApprove, moveReject, moveDelete} {
		if next, err := nextState(&store.KeyRequest{State: "odd"}, m); err == nil {
			t.Errorf("%s leads to %q", m, next)
		}
	}
}
