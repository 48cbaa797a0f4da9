package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/usage"
)

// Bounds of the records of refused requests.
const (
	refusalsOfKey = 100     // the newest of each key, and of each API without a known key
	mostRefusals  = 500_000 // of all organisations

	mostCounted = 10_000 // records that a list counts
)

// addRefusals adds the records of a batch, and drops those of the same keys that are too
// many. Times in the future count for now, so that a wrong clock keeps no record for ever.
func addRefusals(ctx context.Context, tx *store.Tx, b *usage.Batch, now time.Time) error {
	if len(b.Refusals) == 0 {
		return nil
	}
	p := db.AddRefusalsParams{Gateway: b.Gateway}
	type group struct{ org, key, api string }
	groups := make(map[group]bool)
	trim := db.TrimRefusalsParams{Most: refusalsOfKey}
	sorted := slices.SortedFunc(slices.Values(b.Refusals), func(x, y usage.Refusal) int { return x.At.Compare(y.At) })
	for i := range sorted {
		r := &sorted[i]
		if r.At.After(now) {
			r.At = now
		}
		detail, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("writing a refusal: %w", err)
		}
		p.Orgs, p.Ats, p.Requests = append(p.Orgs, r.Org), append(p.Ats, r.At), append(p.Requests, r.ID)
		p.APIs, p.Keys = append(p.APIs, r.API), append(p.Keys, r.Key)
		p.Reasons, p.Details = append(p.Reasons, r.Reason), append(p.Details, detail)
		of := group{r.Org, r.Key, ""}
		if r.Key == "" {
			of.api = r.API
		}
		if !groups[of] {
			groups[of] = true
			trim.Orgs, trim.Keys, trim.APIs = append(trim.Orgs, of.org), append(trim.Keys, of.key), append(trim.APIs, of.api)
		}
	}
	if err := tx.AddRefusals(ctx, p); err != nil {
		return err
	}
	locked, err := tx.LockRefusals(ctx)
	if err != nil || !locked { // the next batch drops them
		return err
	}
	return tx.TrimRefusals(ctx, trim)
}

// forgetRefusals drops records that are too old or too many. It leaves them while another
// transaction drops some.
func forgetRefusals(ctx context.Context, tx *store.Tx, before time.Time) error {
	locked, err := tx.LockRefusals(ctx)
	if err != nil || !locked {
		return err
	}
	return tx.ForgetRefusals(ctx, db.ForgetRefusalsParams{Before: before, Most: mostRefusals})
}

// A RefusalQuery selects records of an organisation.
type RefusalQuery struct {
	Org          string
	Since, Until time.Time // Until is not part of the range
	API, Reason  string    // "": all
	Key          *string   // as in rows; "": without a known key; nil: all
	Page         store.Page
}

// A Refusal is a record, with the gateway that handed it over.
type Refusal struct {
	usage.Refusal
	// Name of the gateway that refused the request.
	Gateway string `json:"gateway,omitempty"`
}

// Refusals returns a page of records, the newest first, and how many there are on all
// pages: at most 10,000 are counted.
func Refusals(ctx context.Context, st *store.Store, q *RefusalQuery) (list []Refusal, total int64, err error) {
	p := db.ListRefusalsParams{
		OrgID: q.Org, Since: q.Since, Until: q.Until, APIID: q.API, Reason: q.Reason, Skip: q.Page.Offset(), Max: q.Page.Limit(),
	}
	if q.Key != nil {
		p.OfKey, p.KeyHash = true, *q.Key
	}
	rows, err := st.Read().ListRefusals(ctx, p)
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	total, err = st.Read().CountRefusals(ctx, db.CountRefusalsParams{
		OrgID: p.OrgID, Since: p.Since, Until: p.Until, APIID: p.APIID, OfKey: p.OfKey, KeyHash: p.KeyHash, Reason: p.Reason, Most: mostCounted,
	})
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	list = make([]Refusal, 0, len(rows))
	for i := range rows {
		r, err := refusalOf(rows[i].Gateway, rows[i].Detail)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, *r)
	}
	return list, total, nil
}

// RefusalByID returns the newest record of a request id. The error wraps store.ErrNotFound
// if there is none.
func RefusalByID(ctx context.Context, st *store.Store, org, id string) (*Refusal, error) {
	row, err := st.Read().RefusalOf(ctx, db.RefusalOfParams{OrgID: org, RequestID: id})
	if err != nil {
		return nil, store.Translate(err)
	}
	return refusalOf(row.Gateway, row.Detail)
}

// KeyNamed returns the identity of an organisation's key by the beginning of its hash, as
// logs name keys; "" if no key, or more than one, has it.
func KeyNamed(ctx context.Context, st *store.Store, org, name string) (string, error) {
	if !hexadecimal.MatchString(name) {
		return "", nil
	}
	found, err := st.Read().KeysBeginning(ctx, db.KeysBeginningParams{OrgID: org, Prefix: name + "%"})
	if err != nil || len(found) != 1 {
		return "", store.Translate(err)
	}
	return found[0], nil
}

var hexadecimal = regexp.MustCompile(`^[0-9a-f]{12,}$`)

func refusalOf(gateway string, detail []byte) (*Refusal, error) {
	r := &Refusal{Gateway: gateway}
	if err := json.Unmarshal(detail, &r.Refusal); err != nil {
		return nil, fmt.Errorf("reading a refusal: %w", err)
	}
	return r, nil
}
