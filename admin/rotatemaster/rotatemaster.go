// Package rotatemaster rotates the master key: it seals again, with a new key, what the
// database holds sealed with the former one. It also checks that an admin has the master
// key of its database.
//
// It works row by row, in transactions of a page each, and can be interrupted and
// continued. Until it is complete some values are sealed with either key, so that admins
// must know both.
package rotatemaster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// A Rotation is one rotation of the master key. Store, Former and New are required.
type Rotation struct {
	Store    *store.Store
	Former   secret.Key
	New      secret.Key
	DryRun   bool                  // only check
	Progress func(done, total int) // called with the values that are done; may be nil
}

// A Count is the number of values of a table that are sealed with each key.
type Count struct {
	Table  string `json:"table"`
	New    int    `json:"new"`    // sealed with the new key already
	Former int    `json:"former"` // that were sealed with the former key when it began
}

// An UnreadableError lists values that neither key opens. Nothing was changed then.
type UnreadableError struct {
	Values []string // where they are and why, the first ones
	Count  int      // of all
}

// Error names the values.
func (e *UnreadableError) Error() string {
	text := fmt.Sprintf("%d sealed values open with neither key, so nothing was changed:\n  %s", e.Count, strings.Join(e.Values, "\n  "))
	if e.Count > len(e.Values) {
		text += fmt.Sprintf("\n  and %d more", e.Count-len(e.Values))
	}
	return text
}

// shownUnreadable is how many values an UnreadableError names.
const shownUnreadable = 10

// errSameKey refuses a rotation that would do nothing.
var errSameKey = errors.New("the new key is the former one")

// Run checks that every value opens, and seals those of the former key with the new one.
// After an error every value still opens with one of the two keys, and Run can be called
// again.
func (r *Rotation) Run(ctx context.Context) ([]Count, error) {
	if r.New.ID() == r.Former.ID() {
		return nil, errSameKey
	}
	counts, err := r.check(ctx)
	if err == nil {
		err = Verify(ctx, r.Store, r.New.After(r.Former))
	}
	if err != nil || r.DryRun {
		return counts, err
	}
	total, done := 0, 0
	for _, c := range counts {
		total += c.Former
	}
	tables := store.SealedTables()
	for i := range tables {
		if err := r.table(ctx, &tables[i], func(n int) { done += n; r.report(done, total) }); err != nil {
			return nil, fmt.Errorf("sealing %s anew: %w", tables[i].Name, err)
		}
	}
	if err := r.renew(ctx); err != nil {
		return nil, fmt.Errorf("sealing the check value anew: %w", err)
	}
	if total > 0 {
		err = r.audit(ctx)
	}
	return counts, err
}

// audit writes the rotation to the audit log.
func (r *Rotation) audit(ctx context.Context) error {
	org, err := r.Store.FirstOrg(ctx)
	if err == nil {
		err = r.Store.InTx(ctx, func(tx *store.Tx) error {
			by := store.Author{Org: org, Name: "secrets rotate", Kind: "system"}
			return tx.Audit(ctx, by, store.AuditEntry{Action: "rotated", Kind: "master key", ID: r.New.ID()})
		})
	}
	if err != nil {
		return fmt.Errorf("noting it in the audit log: %w", err)
	}
	return nil
}

func (r *Rotation) report(done, total int) {
	if total = max(total, done); total > 0 && r.Progress != nil {
		r.Progress(done, total)
	}
}

// each reads all values of a table, page by page.
func (r *Rotation) each(ctx context.Context, t *store.SealedTable, page func([]store.SealedValue) error) error {
	for after := ""; ; {
		found, last, err := t.Next(ctx, r.Store, after)
		if err != nil {
			return err
		}
		if err := page(found); err != nil || last == "" {
			return err
		}
		after = last
	}
}

// check opens every value.
func (r *Rotation) check(ctx context.Context) ([]Count, error) {
	var counts []Count
	var wrong UnreadableError
	tables := store.SealedTables()
	for i := range tables {
		c := Count{Table: tables[i].Name}
		err := r.each(ctx, &tables[i], func(found []store.SealedValue) error {
			for j := range found {
				r.count(&found[j], &c, &wrong)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", c.Table, err)
		}
		counts = append(counts, c)
	}
	if wrong.Count > 0 {
		return nil, &wrong
	}
	return counts, nil
}

func (r *Rotation) count(v *store.SealedValue, c *Count, wrong *UnreadableError) {
	_, err := r.New.Open(v.Sealed, v.Place())
	if err == nil {
		c.New++
		return
	}
	if errors.Is(err, secret.ErrOtherKey) {
		if _, err = r.Former.Open(v.Sealed, v.Place()); err == nil {
			c.Former++
			return
		}
	}
	if wrong.Count++; len(wrong.Values) < shownUnreadable {
		wrong.Values = append(wrong.Values, v.String()+": "+err.Error())
	}
}

// table rotates the values of a table, each page in one transaction.
func (r *Rotation) table(ctx context.Context, t *store.SealedTable, report func(int)) error {
	return r.each(ctx, t, func(found []store.SealedValue) error {
		changed := 0
		err := r.Store.InTx(ctx, func(tx *store.Tx) error {
			changed = 0
			for i := range found {
				done, err := r.value(ctx, tx, t, &found[i])
				if err != nil {
					return err
				}
				if done {
					changed++
				}
			}
			return nil
		})
		if err == nil {
			report(changed)
		}
		return err
	})
}

// value rotates one value. A value that was changed in the meantime is skipped: it was
// sealed with the new key then.
func (r *Rotation) value(ctx context.Context, tx *store.Tx, t *store.SealedTable, v *store.SealedValue) (done bool, err error) {
	if _, err := r.New.Open(v.Sealed, v.Place()); err == nil {
		return false, nil
	}
	plain, err := r.Former.Open(v.Sealed, v.Place())
	if err != nil {
		return false, fmt.Errorf("%s: %w", v, err)
	}
	fresh, err := r.New.Seal(plain, v.Place())
	if err != nil {
		return false, fmt.Errorf("%s: %w", v, err)
	}
	return t.Replace(ctx, tx, v, fresh)
}
