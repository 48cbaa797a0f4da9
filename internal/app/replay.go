package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/replay"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/usage"
)

// replayer evaluates recorded requests as dry runs. It implements replay.Comparer.
type replayer struct{ *adminExplainer }

// Compare implements replay.Comparer.
func (r replayer) Compare(ctx context.Context, org string, before, after []store.Object) (replay.Evaluation, error) {
	c := &comparison{store: r.store, org: org, callers: make(map[string]*caller)}
	if r.learn != nil {
		if err := r.learn(ctx); err != nil {
			return nil, err
		}
	}
	for i, objects := range [][]store.Object{before, after} {
		bundle, err := bundleOf([]string{"present", "changed"}[i], objects)
		if err == nil {
			err = r.withSecrets(ctx, bundle)
		}
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		aside, err := r.gateway.Aside(ctx, bundle)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.both[i] = aside.Replay()
	}
	return c, nil
}

// A comparison evaluates requests under two configurations.
type comparison struct {
	both    [2]*gateway.Replay // before and after
	store   *store.Store
	org     string
	callers map[string]*caller // by the identity in samples
}

// A caller is a key as it is now.
type caller struct {
	hash, alias string
	gone        bool
}

// Close implements replay.Evaluation.
func (c *comparison) Close() {
	for _, one := range c.both {
		if one != nil {
			one.Close()
		}
	}
}

// Why a sample says nothing about a change.
const (
	skippedKey   = "the key has been deleted"
	skippedBody  = "the body was too large to be recorded"
	skippedShape = "the record cannot be read as a request"
)

// Evaluate implements replay.Evaluation.
func (c *comparison) Evaluate(ctx context.Context, s *usage.Sample, as string) (p replay.Pair, err error) {
	q, err := explain.Recorded(s)
	if err != nil {
		p.Skipped = skippedShape
		return p, nil
	}
	if q.KeyHash != "" {
		by, err := c.caller(ctx, q.KeyHash)
		if err != nil {
			return p, err
		}
		if p.Alias, q.KeyHash = by.alias, by.hash; by.gone {
			p.Skipped = skippedKey
			return p, nil
		}
	}
	outcomes := [2]replay.Outcome{}
	for i, under := range c.both {
		if i == 1 && as != "" && (q.KeyHash != "" || len(q.Policies) > 0) {
			other := *q
			other.KeyHash, other.Policies = "", []string{as}
			q = &other
		}
		outcomes[i] = outcomeOf(under.Explain(q))
		if o := &outcomes[i]; o.Reason == pipeline.ReasonKeyStoreUnavailable.String() || o.Reason == pipeline.ReasonCounterUnavailable.String() {
			return p, fmt.Errorf("%s: %w", o.Reason, store.ErrUnavailable)
		}
	}
	p.Before, p.After = outcomes[0], outcomes[1]
	if s.Cut && !(refusedEarly(&p.Before) && refusedEarly(&p.After)) {
		p.Skipped = skippedBody
	}
	return p, nil
}

// refusedEarly reports whether a request is refused before its body is looked at.
func refusedEarly(o *replay.Outcome) bool {
	return !o.Allowed && o.Stage != "graphql" && o.Stage != "persisted"
}

// mostCallers bounds the keys that a comparison remembers.
const mostCallers = 20_000

// caller finds the key of an identity in samples.
func (c *comparison) caller(ctx context.Context, identity string) (*caller, error) {
	if known := c.callers[identity]; known != nil {
		return known, nil
	}
	row, err := c.store.KeyByHash(ctx, c.org, identity)
	if errors.Is(err, store.ErrNotFound) {
		row, err = c.store.MaskedKey(ctx, c.org, identity)
	}
	found := &caller{hash: row.KeyHash, alias: row.Alias, gone: errors.Is(err, store.ErrNotFound)}
	if err != nil && !found.gone {
		return nil, fmt.Errorf("looking for the key of a sample: %w", err)
	}
	if len(c.callers) >= mostCallers {
		clear(c.callers)
	}
	c.callers[identity] = found
	return found, nil
}

func outcomeOf(r *explain.Report) replay.Outcome {
	o := replay.Outcome{Allowed: r.Outcome.Allowed, Reason: r.Outcome.Reason, Stage: r.Outcome.Stage}
	if o.Allowed {
		return o
	}
	for i := range r.Steps {
		f := &r.Steps[i].Finding
		if r.Steps[i].Result != explain.Failed {
			continue
		}
		if o.Said = f.Said; len(f.Facts) > 0 {
			o.Rule, o.Value, o.Seen, o.From = f.Facts[0].Rule, f.Facts[0].Value, f.Facts[0].Seen, f.Facts[0].From
		}
		break
	}
	return o
}
