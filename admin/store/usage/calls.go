package usage

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Calls are how often something was called, and how many of the calls were refused,
// failed, or answered with a status from 400 on.
type Calls struct{ Hits, Errors int64 }

// CallsOfAPIs returns the calls of some APIs since an hour, by id. APIs without calls are
// left out.
func CallsOfAPIs(ctx context.Context, st *store.Store, org string, apis []string, since time.Time) (map[string]Calls, error) {
	rows, err := st.Read().CallsOfAPIs(ctx, db.CallsOfAPIsParams{OrgID: org, APIs: apis, Since: since.Truncate(time.Hour)})
	if err != nil {
		return nil, store.Translate(err)
	}
	calls := make(map[string]Calls, len(rows))
	for _, r := range rows {
		calls[r.APIID] = Calls{r.Hits, r.Errors}
	}
	return calls, nil
}

// CallsOfKeys is CallsOfAPIs for keys, which are named as in usage.
func CallsOfKeys(ctx context.Context, st *store.Store, org string, keys []string, since time.Time) (map[string]Calls, error) {
	split, err := splitOf(ctx, st, since.Truncate(time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
	}
	rows, err := st.Read().CallsOfKeys(ctx, db.CallsOfKeysParams{OrgID: org, Keys: keys, Since: since.Truncate(time.Hour), Split: split})
	if err != nil {
		return nil, store.Translate(err)
	}
	calls := make(map[string]Calls, len(rows))
	for _, r := range rows {
		calls[r.KeyHash] = Calls{r.Hits, r.Errors}
	}
	return calls, nil
}

// splitOf returns up to where hours by key are summed up; minutes are complete from there
// on.
func splitOf(ctx context.Context, st *store.Store, since, until time.Time) (time.Time, error) {
	floor, err := Floor(ctx, st)
	if err != nil {
		return floor, err
	}
	if floor.Before(since) {
		floor = since
	}
	split, err := st.Read().FirstMarkedHour(ctx, db.FirstMarkedHourParams{Since: floor, Until: until})
	if err = store.Translate(err); errors.Is(err, store.ErrNotFound) {
		return until, nil
	}
	return split, err
}
