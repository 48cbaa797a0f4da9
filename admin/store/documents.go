package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Document is a stored document with its source.
type Document = db.DocumentByIDRow

// ListedDocument is a document without its text.
type ListedDocument = db.ListDocumentsRow

// CleanDocument is a document as developers may see it, or else its source, which is empty
// where Edition is the wanted one.
type CleanDocument = db.CleanDocumentRow

// NewDocument is what is stored of a document.
type NewDocument = db.InsertDocumentParams

// kindDocument names documents in the audit log.
const kindDocument = "document"

// DocumentByID returns an organisation's document, or ErrNotFound.
func (s *Store) DocumentByID(ctx context.Context, org, id string) (Document, error) {
	row, err := s.queries.DocumentByID(ctx, db.DocumentByIDParams{OrgID: org, ID: id})
	return row, translate(err)
}

// CleanDocument returns a document for developers, or ErrNotFound.
func (s *Store) CleanDocument(ctx context.Context, org, id string, edition int32) (CleanDocument, error) {
	row, err := s.queries.CleanDocument(ctx, db.CleanDocumentParams{OrgID: org, ID: id, Edition: edition})
	return row, translate(err)
}

// RenewDocument stores what newer rules made of a document, unless it was replaced in the
// meantime.
func (tx *Tx) RenewDocument(ctx context.Context, org string, s *CleanDocument) error {
	return tx.Queries.RenewDocument(ctx, db.RenewDocumentParams{OrgID: org, ID: s.ID, Version: s.Version, Clean: s.Clean, Edition: s.Edition})
}

// DocumentFilter filters a list of documents. Empty members do not filter.
type DocumentFilter struct {
	Prefix string // of a name, in any case
	API    string
	Kind   string
}

// ListDocuments returns one page of an organisation's documents, the oldest first,
// and how many there are in all.
func (s *Store) ListDocuments(ctx context.Context, org string, f DocumentFilter, page Page) ([]ListedDocument, int64, error) {
	prefix := namePrefix(f.Prefix)
	total, err := s.queries.CountDocuments(ctx, db.CountDocumentsParams{OrgID: org, Prefix: prefix, APIID: f.API, Kind: f.Kind})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListDocuments(ctx, db.ListDocumentsParams{
		OrgID: org, Prefix: prefix, APIID: f.API, Kind: f.Kind, Max: page.Limit(), Skip: page.Offset(),
	})
	return rows, total, translate(err)
}

// CountDocuments returns how many documents an organisation has.
func (tx *Tx) CountDocuments(ctx context.Context, org string) (int64, error) {
	return tx.Queries.CountDocuments(ctx, db.CountDocumentsParams{OrgID: org})
}

// HasAPI reports whether the organisation has an API.
func (tx *Tx) HasAPI(ctx context.Context, org, id string) (bool, error) {
	known, err := tx.Queries.KnownAPIs(ctx, db.KnownAPIsParams{OrgID: org, IDs: []string{id}})
	return len(known) > 0, err
}

// CreateDocument adds a document. Entry is its entry of the audit log, as JSON.
func (tx *Tx) CreateDocument(ctx context.Context, by Author, d *NewDocument, entry []byte) error {
	if err := tx.Queries.InsertDocument(ctx, *d); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "created", Kind: kindDocument, ID: d.ID, After: entry})
}

// LockDocument returns what is known of a document without its text. Nobody else
// changes it until the transaction ends.
func (tx *Tx) LockDocument(ctx context.Context, org, id string) (db.LockDocumentRow, error) {
	row, err := tx.Queries.LockDocument(ctx, db.LockDocumentParams{OrgID: org, ID: id})
	return row, translate(err)
}

// DocumentAudit is the entry of the audit log for a document before and after a change, as
// JSON.
type DocumentAudit struct{ Before, After []byte }

// UpdateDocument replaces a locked document and returns its new version.
func (tx *Tx) UpdateDocument(ctx context.Context, by Author, d *NewDocument, told DocumentAudit) (version int64, err error) {
	version, err = tx.Queries.UpdateDocument(ctx, db.UpdateDocumentParams{
		OrgID: d.OrgID, ID: d.ID, APIID: d.APIID, Name: d.Name, Kind: d.Kind, Source: d.Source, Clean: d.Clean, Edition: d.Edition,
	})
	if err != nil {
		return 0, err
	}
	return version, tx.Audit(ctx, by, AuditEntry{Action: "updated", Kind: kindDocument, ID: d.ID, Before: told.Before, After: told.After})
}

// DeleteDocument deletes a locked document. Before is its entry of the audit log.
func (tx *Tx) DeleteDocument(ctx context.Context, by Author, id string, before []byte) error {
	if err := tx.Queries.DeleteDocument(ctx, db.DeleteDocumentParams{OrgID: by.Org, ID: id}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "deleted", Kind: kindDocument, ID: id, Before: before})
}

// EntriesWithDocument returns the first entries that have a document, by id and name.
func (tx *Tx) EntriesWithDocument(ctx context.Context, org, id string) ([]db.EntriesWithDocumentRow, error) {
	return tx.Queries.EntriesWithDocument(ctx, db.EntriesWithDocumentParams{OrgID: org, Document: id})
}
