package declarative

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Settings are the options of Apply.
type Settings struct {
	Options
	DryRun bool
	Expect int64  // revision that must be current; negative: any
	Reason string // for the history
	Keys   bool   // fetch keys from the server even if no file has any
	Strict bool   // have the server refuse members that have no effect

	Agree  func(*Plan) error // called before anything is changed; its error aborts. Required
	Stale  func(error) bool  // reports whether a server refused because of a concurrent change. Required
	Report any               // for the Outcome; may be nil
}

// An Outcome is the result of Apply.
type Outcome struct {
	Revision int64    `json:"revision"` // current afterwards
	DryRun   bool     `json:"dry_run"`
	Changes  []Change `json:"changes"`
	Keys     []NewKey `json:"keys,omitempty"`   // that were generated
	Report   any      `json:"report,omitempty"` // the source of the objects, if it is to be reported

	Warnings []string `json:"warnings,omitempty"` // members of the objects that are kept and have no effect
}

// A NewKey is a generated key. It is shown only once.
type NewKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	Hash string `json:"key_hash"`
}

// tries bounds how often a plan is repeated because of concurrent changes.
const tries = 3

// Plan compares the objects of a server with the wanted ones, and returns the server's
// revision.
func (s *Settings) Plan(ctx context.Context, on Server, want *Set) (*Plan, int64, error) {
	have, revision, err := Fetch(ctx, on, s.Keys || want.Count(Key) > 0)
	if err != nil {
		return nil, 0, err
	}
	plan, err := NewPlan(have, want, s.Options)
	return plan, revision, err
}

// Apply applies the wanted objects to a server in one transaction.
func (s *Settings) Apply(ctx context.Context, on Server, want *Set) (*Outcome, error) {
	for try := 1; ; try++ {
		plan, revision, err := s.Plan(ctx, on, want)
		if err != nil {
			return nil, err
		}
		out := &Outcome{Revision: revision, DryRun: s.DryRun, Changes: plan.Changes, Report: s.Report}
		if s.Report == nil { // which has them
			out.Warnings = want.Unknown()
		}
		if out.Changes == nil {
			out.Changes = []Change{}
		}
		if err := s.Agree(plan); err != nil {
			return nil, err
		}
		if s.Expect >= 0 {
			revision = s.Expect
		}
		err = s.send(ctx, on, plan, revision, out)
		if err == nil || !s.Stale(err) || s.Expect >= 0 || try == tries {
			return out, err
		}
	}
}

// send sends a plan.
func (s *Settings) send(ctx context.Context, on Server, plan *Plan, revision int64, out *Outcome) error {
	if len(plan.Changes) == 0 && s.Expect < 0 {
		return nil
	}
	b := plan.Batch()
	b.Expect, b.DryRun, b.Reason, b.Strict = &revision, s.DryRun, s.Reason, s.Strict
	answer, err := on.Call(ctx, "POST", "/api/config/apply", b)
	if err != nil {
		return err
	}
	var view struct {
		Revision int64    `json:"revision"`
		Keys     []NewKey `json:"new_keys"`
		Warnings []string `json:"warnings"`
	}
	if err := json.Unmarshal(answer, &view); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if !s.DryRun {
		out.Revision, out.Keys = view.Revision, view.Keys
	}
	if len(out.Warnings) == 0 && s.Report == nil { // a server of another release may know fewer members
		out.Warnings = view.Warnings
	}
	return nil
}

// ErrLate is returned if not every gateway serves a revision in time.
var ErrLate = errors.New("not every gateway serves it yet")

// Wait waits until every gateway known to an admin serves a revision or a later one, for
// at most within; then the error wraps ErrLate.
func Wait(ctx context.Context, on Server, revision int64, within time.Duration) (gateways int, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var state struct {
		Revision int64 `json:"revision"`
		Gateways int   `json:"gateways"`
		UpToDate int   `json:"up_to_date"`

		Behind []string `json:"behind"`
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := get(ctx, on, "/api/config", &state)
		if err == nil && state.Revision >= revision && state.Gateways > 0 && state.UpToDate == state.Gateways {
			return state.Gateways, nil
		}
		if err != nil && ctx.Err() == nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return state.Gateways, fmt.Errorf("%w: %d of %d gateways have revision %d after %s%s", ErrLate, state.UpToDate, state.Gateways, revision, within, missing(state.Behind))
		case <-tick.C:
		}
	}
}

// missing names the first of the gateways that do not serve a revision.
func missing(names []string) string {
	const most = 5
	switch n := len(names); {
	case n == 0:
		return ""
	case n > most:
		return fmt.Sprintf("; missing: %s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return "; missing: " + strings.Join(names, ", ")
}
