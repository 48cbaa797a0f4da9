package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/admin/store/db"
)

// kindCatalogueEntry names entries in the audit log.
const kindCatalogueEntry = "catalogue_entry"

// CatalogueFilter filters a list of entries. Empty members do not filter.
type CatalogueFilter struct {
	Prefix string // of a name, in any case
	API    string
	Policy string
	Shown  *bool
}

// CatalogueEntries returns a whole catalogue in its order.
func (s *Store) CatalogueEntries(ctx context.Context, org string) ([]CatalogueEntry, error) {
	rows, err := s.queries.CatalogueEntries(ctx, org)
	return rows, translate(err)
}

// ListCatalogueEntries returns one page of an organisation's entries in the order of
// the catalogue, and their total number.
func (s *Store) ListCatalogueEntries(ctx context.Context, org string, f CatalogueFilter, page Page) ([]CatalogueEntry, int64, error) {
	prefix := namePrefix(f.Prefix)
	total, err := s.queries.CountCatalogueEntries(ctx, db.CountCatalogueEntriesParams{
		OrgID: org, Prefix: prefix, APIID: f.API, PolicyID: f.Policy, Shown: f.Shown,
	})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListCatalogueEntries(ctx, db.ListCatalogueEntriesParams{
		OrgID: org, Prefix: prefix, APIID: f.API, PolicyID: f.Policy, Shown: f.Shown, Max: page.Limit(), Skip: page.Offset(),
	})
	return rows, total, translate(err)
}

// namePrefix is the pattern for names that begin with a text in any case; "" is none.
func namePrefix(text string) string {
	if text == "" {
		return ""
	}
	return LikePrefix(strings.ToLower(text))
}

// CatalogueSize is how large a catalogue is.
type CatalogueSize = db.CatalogueSizeRow

// TouchCatalogue creates the catalogue of the author's organisation if it does not
// exist, counts a change of it, and locks it until the transaction ends. It returns the
// size before the change.
func (tx *Tx) TouchCatalogue(ctx context.Context, by Author, id string, body []byte) (CatalogueSize, error) {
	_, err := tx.Queries.TouchPortalObject(ctx, db.TouchPortalObjectParams{OrgID: by.Org, Kind: string(PortalCatalogue), ID: id, Body: body})
	if err != nil {
		return CatalogueSize{}, err
	}
	return tx.Queries.CatalogueSize(ctx, by.Org)
}

// CatalogueEntry returns an entry of an organisation, or ErrNotFound. The catalogue is
// to be touched before.
func (tx *Tx) CatalogueEntry(ctx context.Context, org, id string) (CatalogueEntry, error) {
	row, err := tx.Queries.CatalogueEntry(ctx, db.CatalogueEntryParams{OrgID: org, ID: id})
	return row, translate(err)
}

// CreateCatalogueEntry stores an entry. The catalogue is to be touched before.
func (tx *Tx) CreateCatalogueEntry(ctx context.Context, by Author, e *CatalogueEntry) error {
	if err := tx.Queries.InsertCatalogueEntries(ctx, db.InsertCatalogueEntriesParams(columnsOf(by.Org, []CatalogueEntry{*e}))); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "created", Kind: kindCatalogueEntry, ID: e.ID, After: e.Body})
}

// UpdateCatalogueEntry replaces an entry and returns its new version.
func (tx *Tx) UpdateCatalogueEntry(ctx context.Context, by Author, old, e *CatalogueEntry) (version int64, err error) {
	if err := tx.Queries.UpdateCatalogueEntries(ctx, columnsOf(by.Org, []CatalogueEntry{*e}).update()); err != nil {
		return 0, err
	}
	return old.Version + 1, tx.Audit(ctx, by, AuditEntry{Action: "updated", Kind: kindCatalogueEntry, ID: e.ID, Before: old.Body, After: e.Body})
}

// DeleteCatalogueEntry deletes an entry.
func (tx *Tx) DeleteCatalogueEntry(ctx context.Context, by Author, old *CatalogueEntry) error {
	if err := tx.Queries.DeleteCatalogueEntries(ctx, db.DeleteCatalogueEntriesParams{OrgID: by.Org, IDs: []string{old.ID}}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "deleted", Kind: kindCatalogueEntry, ID: old.ID, Before: old.Body})
}

// CatalogueEntries returns the entries of a catalogue that is locked.
func (tx *Tx) CatalogueEntries(ctx context.Context, org string) ([]CatalogueEntry, error) {
	rows, err := tx.Queries.CatalogueEntries(ctx, org)
	return rows, translate(err)
}

// A CatalogueRewrite replaces all entries of a locked catalogue.
type CatalogueRewrite struct {
	ID  string           // of the catalogue
	Old []CatalogueEntry // as CatalogueEntries returned them
	New []CatalogueEntry // in their order
}

// RewriteCatalogue replaces all entries. Unchanged entries keep their versions, and
// only differences are written to the audit log.
func (tx *Tx) RewriteCatalogue(ctx context.Context, by Author, w *CatalogueRewrite) error {
	d := compareCatalogues(w.Old, w.New)
	if err := d.store(ctx, tx, by.Org); err != nil {
		return err
	}
	before, after := append(entryBodies(d.replaced), entryBodies(d.gone)...), append(entryBodies(d.changed), entryBodies(d.added)...)
	return tx.Audit(ctx, by, AuditEntry{Action: "updated", Kind: portalAuditKind(string(PortalCatalogue)), ID: w.ID, Before: catalogueJSON(before), After: catalogueJSON(after)})
}

// catalogueDifference is the difference between two catalogues.
type catalogueDifference struct {
	added, changed, moved, gone []CatalogueEntry
	replaced                    []CatalogueEntry // what changed were
}

func compareCatalogues(old, entries []CatalogueEntry) *catalogueDifference {
	d := new(catalogueDifference)
	before := make(map[string]*CatalogueEntry, len(old))
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

func (d *catalogueDifference) store(ctx context.Context, tx *Tx, org string) error {
	if len(d.gone) > 0 {
		ids := make([]string, len(d.gone))
		for i := range d.gone {
			ids[i] = d.gone[i].ID
		}
		if err := tx.Queries.DeleteCatalogueEntries(ctx, db.DeleteCatalogueEntriesParams{OrgID: org, IDs: ids}); err != nil {
			return err
		}
	}
	if len(d.changed) > 0 {
		if err := tx.Queries.UpdateCatalogueEntries(ctx, columnsOf(org, d.changed).update()); err != nil {
			return err
		}
	}
	if len(d.moved) > 0 {
		c := columnsOf(org, d.moved)
		if err := tx.Queries.MoveCatalogueEntries(ctx, db.MoveCatalogueEntriesParams{OrgID: org, IDs: c.IDs, Positions: c.Positions}); err != nil {
			return err
		}
	}
	if len(d.added) > 0 {
		return tx.Queries.InsertCatalogueEntries(ctx, db.InsertCatalogueEntriesParams(columnsOf(org, d.added)))
	}
	return nil
}

// entryColumns is entries by column.
type entryColumns db.InsertCatalogueEntriesParams

func columnsOf(org string, entries []CatalogueEntry) entryColumns {
	l := entryColumns{OrgID: org}
	for i := range entries {
		e := &entries[i]
		l.IDs, l.Positions, l.Names = append(l.IDs, e.ID), append(l.Positions, e.Position), append(l.Names, e.Name)
		l.APIs, l.Policies, l.Documents = append(l.APIs, e.APIID), append(l.Policies, e.PolicyID), append(l.Documents, e.Document)
		l.Shown, l.Bodies = append(l.Shown, e.Shown), append(l.Bodies, string(e.Body))
	}
	return l
}

func (l entryColumns) update() db.UpdateCatalogueEntriesParams {
	return db.UpdateCatalogueEntriesParams{
		OrgID: l.OrgID, IDs: l.IDs, Positions: l.Positions, Names: l.Names, APIs: l.APIs,
		Policies: l.Policies, Documents: l.Documents, Shown: l.Shown, Bodies: l.Bodies,
	}
}

func entryBodies(entries []CatalogueEntry) [][]byte {
	all := make([][]byte, len(entries))
	for i := range entries {
		all[i] = entries[i].Body
	}
	return all
}

// catalogueJSON is entries as the catalogue that holds no others.
func catalogueJSON(entries [][]byte) []byte {
	return fmt.Appendf(nil, `{"apis":[%s]}`, bytes.Join(entries, []byte{','}))
}

// CatalogueNames are ids of objects that entries name.
type CatalogueNames struct{ APIs, Policies, Documents []string }

// KnownNames returns which of some ids are of objects that the organisation has.
func (tx *Tx) KnownNames(ctx context.Context, org string, n CatalogueNames) (CatalogueNames, error) {
	apis, err := tx.Queries.KnownAPIs(ctx, db.KnownAPIsParams{OrgID: org, IDs: n.APIs})
	if err != nil {
		return CatalogueNames{}, translate(err)
	}
	policies, err := tx.Queries.KnownPolicies(ctx, db.KnownPoliciesParams{OrgID: org, IDs: n.Policies})
	if err != nil {
		return CatalogueNames{}, translate(err)
	}
	documents, err := tx.Queries.KnownDocuments(ctx, db.KnownDocumentsParams{OrgID: org, IDs: n.Documents})
	return CatalogueNames{apis, policies, documents}, translate(err)
}
