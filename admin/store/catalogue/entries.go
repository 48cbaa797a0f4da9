package catalogue

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// kindEntry names entries in the audit log.
const kindEntry = "catalogue_entry"

// EntryFilter says which entries a list holds. Empty members do not restrict.
type EntryFilter struct {
	Prefix string // of a name, in any case
	API    string
	Policy string
	Shown  *bool
}

// Entries returns a whole catalogue in its order.
func Entries(ctx context.Context, st *store.Store, org string) ([]Entry, error) {
	rows, err := st.Read().CatalogueEntries(ctx, org)
	return rows, store.Translate(err)
}

// List returns one page of an organisation's entries in the catalogue's order, and
// how many there are in all.
func List(ctx context.Context, st *store.Store, org string, f EntryFilter, page store.Page) ([]Entry, int64, error) {
	prefix := prefixOf(f.Prefix)
	total, err := st.Read().CountCatalogueEntries(ctx, db.CountCatalogueEntriesParams{
		OrgID: org, Prefix: prefix, APIID: f.API, PolicyID: f.Policy, Shown: f.Shown,
	})
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	rows, err := st.Read().ListCatalogueEntries(ctx, db.ListCatalogueEntriesParams{
		OrgID: org, Prefix: prefix, APIID: f.API, PolicyID: f.Policy, Shown: f.Shown, Max: page.Limit(), Skip: page.Offset(),
	})
	return rows, total, store.Translate(err)
}

// prefixOf is the pattern for names that begin with a text in any case; "" is none.
func prefixOf(text string) string {
	if text == "" {
		return ""
	}
	return store.LikePrefix(strings.ToLower(text))
}

// Size is how large a catalogue is.
type Size = db.CatalogueSizeRow

// Touch makes the author's organisation a catalogue with this id and body unless it
// has one, and in any case counts a change of it. Nobody else changes it until the
// transaction ends. The returned size is that before the change.
func Touch(ctx context.Context, tx *store.Tx, by store.Author, id string, body []byte) (Size, error) {
	_, err := tx.TouchPortalObject(ctx, db.TouchPortalObjectParams{OrgID: by.Org, Kind: string(Catalogue), ID: id, Body: body})
	if err != nil {
		return Size{}, err
	}
	return tx.CatalogueSize(ctx, by.Org)
}

// Find returns an entry of an organisation, or store.ErrNotFound. The catalogue is
// to be touched before.
func Find(ctx context.Context, tx *store.Tx, org, id string) (Entry, error) {
	row, err := tx.CatalogueEntry(ctx, db.CatalogueEntryParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Add stores an entry. The catalogue is to be touched before.
func Add(ctx context.Context, tx *store.Tx, by store.Author, e *Entry) error {
	if err := tx.InsertCatalogueEntries(ctx, db.InsertCatalogueEntriesParams(columns(by.Org, []Entry{*e}))); err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "created", Kind: kindEntry, ID: e.ID, After: e.Body})
}

// Change replaces an entry as Find returned it and returns its new version.
func Change(ctx context.Context, tx *store.Tx, by store.Author, old, e *Entry) (version int64, err error) {
	if err := tx.UpdateCatalogueEntries(ctx, columns(by.Org, []Entry{*e}).update()); err != nil {
		return 0, err
	}
	return old.Version + 1, tx.Audit(ctx, by, store.Deed{Action: "updated", Kind: kindEntry, ID: e.ID, Before: old.Body, After: e.Body})
}

// Remove deletes an entry as Find returned it.
func Remove(ctx context.Context, tx *store.Tx, by store.Author, old *Entry) error {
	if err := tx.DeleteCatalogueEntries(ctx, db.DeleteCatalogueEntriesParams{OrgID: by.Org, IDs: []string{old.ID}}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "deleted", Kind: kindEntry, ID: old.ID, Before: old.Body})
}

// Held returns the entries of a catalogue that is locked.
func Held(ctx context.Context, tx *store.Tx, org string) ([]Entry, error) {
	rows, err := tx.CatalogueEntries(ctx, org)
	return rows, store.Translate(err)
}

// A Rewrite replaces all entries of a locked catalogue.
type Rewrite struct {
	ID  string  // of the catalogue
	Old []Entry // as Held returned them
	New []Entry // in their order
}

// Put carries out a rewrite. Entries that stay as they were keep their versions. The
// audit log has what differs.
func Put(ctx context.Context, tx *store.Tx, by store.Author, w *Rewrite) error {
	d := differences(w.Old, w.New)
	if err := d.store(ctx, tx, by.Org); err != nil {
		return err
	}
	before, after := append(bodies(d.replaced), bodies(d.gone)...), append(bodies(d.changed), bodies(d.added)...)
	return tx.Audit(ctx, by, store.Deed{Action: "updated", Kind: auditKind(string(Catalogue)), ID: w.ID, Before: listing(before), After: listing(after)})
}

// difference is what leads from one catalogue to another.
type difference struct {
	added, changed, moved, gone []Entry
	replaced                    []Entry // what changed were
}

func differences(old, entries []Entry) *difference {
	d := new(difference)
	before := make(map[string]*Entry, len(old))
	for i := range old {
		before[old[i].ID] = &old[i]
	}
	for i, e := range entries {
		e.Position = int32(i)
		was := before[e.ID]
		delete(before, e.ID)
		switch {
		case was == nil:
			d.added = append(d.added, e)
		case !bytes.Equal(was.Body, e.Body):
			d.changed, d.replaced = append(d.changed, e), append(d.replaced, *was)
		case was.Position != e.Position:
			d.moved = append(d.moved, e)
		}
	}
	for i := range old {
		if before[old[i].ID] != nil {
			d.gone = append(d.gone, old[i])
		}
	}
	return d
}

func (d *difference) store(ctx context.Context, tx *store.Tx, org string) error {
	if len(d.gone) > 0 {
		ids := make([]string, len(d.gone))
		for i := range d.gone {
			ids[i] = d.gone[i].ID
		}
		if err := tx.DeleteCatalogueEntries(ctx, db.DeleteCatalogueEntriesParams{OrgID: org, IDs: ids}); err != nil {
			return err
		}
	}
	if len(d.changed) > 0 {
		if err := tx.UpdateCatalogueEntries(ctx, columns(org, d.changed).update()); err != nil {
			return err
		}
	}
	if len(d.moved) > 0 {
		c := columns(org, d.moved)
		if err := tx.MoveCatalogueEntries(ctx, db.MoveCatalogueEntriesParams{OrgID: org, IDs: c.IDs, Positions: c.Positions}); err != nil {
			return err
		}
	}
	if len(d.added) > 0 {
		return tx.InsertCatalogueEntries(ctx, db.InsertCatalogueEntriesParams(columns(org, d.added)))
	}
	return nil
}

// lists is entries by column.
type lists db.InsertCatalogueEntriesParams

func columns(org string, entries []Entry) lists {
	l := lists{OrgID: org}
	for i := range entries {
		e := &entries[i]
		l.IDs, l.Positions, l.Names = append(l.IDs, e.ID), append(l.Positions, e.Position), append(l.Names, e.Name)
		l.APIs, l.Policies, l.Documents = append(l.APIs, e.APIID), append(l.Policies, e.PolicyID), append(l.Documents, e.Document)
		l.Shown, l.Bodies = append(l.Shown, e.Shown), append(l.Bodies, string(e.Body))
	}
	return l
}

func (l lists) update() db.UpdateCatalogueEntriesParams {
	return db.UpdateCatalogueEntriesParams{
		OrgID: l.OrgID, IDs: l.IDs, Positions: l.Positions, Names: l.Names, APIs: l.APIs,
		Policies: l.Policies, Documents: l.Documents, Shown: l.Shown, Bodies: l.Bodies,
	}
}

func bodies(entries []Entry) [][]byte {
	all := make([][]byte, len(entries))
	for i := range entries {
		all[i] = entries[i].Body
	}
	return all
}

// listing is entries as the catalogue that holds no others.
func listing(entries [][]byte) []byte {
	return fmt.Appendf(nil, `{"apis":[%s]}`, bytes.Join(entries, []byte{','}))
}

// Named are ids of objects that entries name.
type Named struct{ APIs, Policies, Documents []string }

// Known returns which of some ids are of objects that the organisation has.
func Known(ctx context.Context, q *db.Queries, org string, n Named) (Named, error) {
	apis, err := q.KnownAPIs(ctx, db.KnownAPIsParams{OrgID: org, IDs: n.APIs})
	if err != nil {
		return Named{}, store.Translate(err)
	}
	policies, err := q.KnownPolicies(ctx, db.KnownPoliciesParams{OrgID: org, IDs: n.Policies})
	if err != nil {
		return Named{}, store.Translate(err)
	}
	documents, err := q.KnownDocuments(ctx, db.KnownDocumentsParams{OrgID: org, IDs: n.Documents})
	return Named{apis, policies, documents}, store.Translate(err)
}
