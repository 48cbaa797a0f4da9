package catalogue

import (
	"context"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Document is a stored document with its source.
type Document = db.DocumentByIDRow

// ListedDocument is a document without its text.
type ListedDocument = db.ListDocumentsRow

// Shown is a document as developers may see it, or else its source, which is empty
// where Edition is the wanted one.
type Shown = db.CleanDocumentRow

// NewDocument is what is stored of a document.
type NewDocument = db.InsertDocumentParams

// kindDocument names documents in the audit log.
const kindDocument = "document"

// DocumentByID returns an organisation's document, or store.ErrNotFound.
func DocumentByID(ctx context.Context, st *store.Store, org, id string) (Document, error) {
	row, err := st.Read().DocumentByID(ctx, db.DocumentByIDParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// ShownDocument returns a document for developers, or store.ErrNotFound.
func ShownDocument(ctx context.Context, st *store.Store, org, id string, edition int32) (Shown, error) {
	row, err := st.Read().CleanDocument(ctx, db.CleanDocumentParams{OrgID: org, ID: id, Edition: edition})
	return row, store.Translate(err)
}

// Renew stores what newer rules made of a document, unless it was replaced in the
// meantime.
func Renew(ctx context.Context, tx *store.Tx, org string, s *Shown) error {
	return tx.RenewDocument(ctx, db.RenewDocumentParams{OrgID: org, ID: s.ID, Version: s.Version, Clean: s.Clean, Edition: s.Edition})
}

// DocumentFilter says which documents a list holds. Empty members do not restrict.
type DocumentFilter struct {
	Prefix string // of a name, in any case
	API    string
	Kind   string
}

// ListDocuments returns one page of an organisation's documents, the oldest first,
// and how many there are in all.
func ListDocuments(ctx context.Context, st *store.Store, org string, f DocumentFilter, page store.Page) ([]ListedDocument, int64, error) {
	prefix := prefixOf(f.Prefix)
	total, err := st.Read().CountDocuments(ctx, db.CountDocumentsParams{OrgID: org, Prefix: prefix, APIID: f.API, Kind: f.Kind})
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	rows, err := st.Read().ListDocuments(ctx, db.ListDocumentsParams{
		OrgID: org, Prefix: prefix, APIID: f.API, Kind: f.Kind, Max: page.Limit(), Skip: page.Offset(),
	})
	return rows, total, store.Translate(err)
}

// CountDocuments returns how many documents an organisation has.
func CountDocuments(ctx context.Context, tx *store.Tx, org string) (int64, error) {
	return tx.CountDocuments(ctx, db.CountDocumentsParams{OrgID: org})
}

// HasAPI tells whether the organisation has an API.
func HasAPI(ctx context.Context, tx *store.Tx, org, id string) (bool, error) {
	known, err := tx.KnownAPIs(ctx, db.KnownAPIsParams{OrgID: org, IDs: []string{id}})
	return len(known) > 0, err
}

// AddDocument stores a document. told is what the audit log says of it, as JSON.
func AddDocument(ctx context.Context, tx *store.Tx, by store.Author, d *NewDocument, told []byte) error {
	if err := tx.InsertDocument(ctx, *d); err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "created", Kind: kindDocument, ID: d.ID, After: told})
}

// LockDocument returns what is known of a document without its text. Nobody else
// changes it until the transaction ends.
func LockDocument(ctx context.Context, tx *store.Tx, org, id string) (db.LockDocumentRow, error) {
	row, err := tx.LockDocument(ctx, db.LockDocumentParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Told is what the audit log says of a document before and after a change, as JSON.
type Told struct{ Before, After []byte }

// ChangeDocument replaces a locked document and returns its new version.
func ChangeDocument(ctx context.Context, tx *store.Tx, by store.Author, d *NewDocument, told Told) (version int64, err error) {
	version, err = tx.UpdateDocument(ctx, db.UpdateDocumentParams{
		OrgID: d.OrgID, ID: d.ID, APIID: d.APIID, Name: d.Name, Kind: d.Kind, Source: d.Source, Clean: d.Clean, Edition: d.Edition,
	})
	if err != nil {
		return 0, err
	}
	return version, tx.Audit(ctx, by, store.Deed{Action: "updated", Kind: kindDocument, ID: d.ID, Before: told.Before, After: told.After})
}

// RemoveDocument deletes a locked document. before is what the audit log says of it.
func RemoveDocument(ctx context.Context, tx *store.Tx, by store.Author, id string, before []byte) error {
	if err := tx.DeleteDocument(ctx, db.DeleteDocumentParams{OrgID: by.Org, ID: id}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "deleted", Kind: kindDocument, ID: id, Before: before})
}

// DocumentUsers returns the first entries that have a document, by id and name.
func DocumentUsers(ctx context.Context, tx *store.Tx, org, id string) ([]db.EntriesWithDocumentRow, error) {
	return tx.EntriesWithDocument(ctx, db.EntriesWithDocumentParams{OrgID: org, Document: id})
}
