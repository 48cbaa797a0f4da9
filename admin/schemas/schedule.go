package schemas

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/store"
)

const (
	// scheduledWithin bounds one fetch on schedule, when no caller waits.
	scheduledWithin = 30 * time.Second
	// lease is how long this admin alone works on an API whose schema is due:
	// longer than the work can take.
	lease = 2 * time.Minute
)

// Run fetches schemas when they are due, until ctx ends. Of several admins on one
// database, one fetches each. A schema that breaks field rules or stored operations is
// not stored; Status and the log report it.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(k.options.Every)
	defer tick.Stop()
	for {
		for k.syncNext(ctx) {
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// syncNext does what is due first, and reports whether there was anything.
func (k *Keeper) syncNext(ctx context.Context) bool {
	org, id, found, err := k.store.LeaseSchemaSync(ctx, lease)
	if err != nil || !found {
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) { // an unavailable database is logged elsewhere
			k.log.Error("schemas that are due could not be found", "err", err)
		}
		return false
	}
	before, err := k.store.SchemaSync(ctx, org, id)
	if err != nil {
		return false // the lease ends, and then it is tried again
	}
	err = k.scheduled(ctx, org, id)
	if stale, ok := errors.AsType[*store.ConflictError](err); ok && stale.Kind == store.Stale {
		err = k.scheduled(ctx, org, id) // the API was changed in the meantime
	}
	k.logResult(ctx, id, before.Error, err)
	return true
}

// logResult logs a failure when it is new, and that it is over.
func (k *Keeper) logResult(ctx context.Context, id, before string, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil && before != "":
		k.log.Info("the schema can be fetched again", "api", id)
	case err != nil && err.Error() != before:
		k.log.Warn("the schema could not be brought up to date; the stored one stays", "api", id, "err", err)
	}
}

// scheduled updates one schema. Its error is stored as it is.
func (k *Keeper) scheduled(ctx context.Context, org, id string) error {
	by := store.Author{Org: org, Name: "schema sync", Kind: "system", Source: "sync"}
	f, err := k.find(ctx, org, id, 0, scheduledWithin)
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return errors.New(refused.text()) // find has noted it
	}
	switch {
	case err != nil:
	case f.report.Total == 0 && f.report.BrokenTotal == 0 && !f.report.SDLChanged:
		// What is left are texts and order, which some upstreams change each time.
		return k.store.NoteSchemaSync(ctx, org, id, "")
	case f.report.BrokenTotal > 0:
		err = fmt.Errorf("the upstream's new schema breaks %d field rules or stored operations, first %s: %s; look at them with POST /api/apis/%s/schema/sync?apply=false, and store the schema with apply=true",
			f.report.BrokenTotal, f.report.Broken[0].Path, f.report.Broken[0].Message, id)
	default:
		err = k.apply(ctx, by, f)
	}
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, k.store.NoteSchemaSync(ctx, org, id, err.Error()))
	}
	return err
}
