// Package catalogue keeps what an organisation's portal offers: its catalogue, the
// configuration of the portal, and documents.
package catalogue

import (
	"context"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Object is an organisation's catalogue, without its entries, or the configuration
// of its portal: JSON, and what is kept beside it.
type Object = db.PortalObject

// Kind says which of an organisation's objects is meant.
type Kind string

// The kinds.
const (
	Catalogue     Kind = "catalogue"
	Configuration Kind = "configuration"
)

// Entry is one of a catalogue: its JSON, and what is kept beside it.
type Entry = db.CatalogueEntry

// OrgExists tells whether there is an organisation.
func OrgExists(ctx context.Context, st *store.Store, org string) (bool, error) {
	exists, err := st.Read().OrgExists(ctx, org)
	return exists, store.Translate(err)
}

// Get returns one of an organisation's objects, or store.ErrNotFound.
func Get(ctx context.Context, st *store.Store, org string, kind Kind) (Object, error) {
	row, err := st.Read().PortalObject(ctx, db.PortalObjectParams{OrgID: org, Kind: string(kind)})
	return row, store.Translate(err)
}

// EntryByID returns an organisation's entry, or store.ErrNotFound.
func EntryByID(ctx context.Context, st *store.Store, org, id string) (Entry, error) {
	row, err := st.Read().CatalogueEntry(ctx, db.CatalogueEntryParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// EntryByPolicy returns the entry that offers a policy, or store.ErrNotFound. Of
// several it is one that is shown, and then the first of the catalogue.
func EntryByPolicy(ctx context.Context, st *store.Store, org, policy string) (Entry, error) {
	row, err := st.Read().CatalogueEntryByPolicy(ctx, db.CatalogueEntryByPolicyParams{OrgID: org, PolicyID: policy})
	return row, store.Translate(err)
}

// Lock returns one of an organisation's objects, or store.ErrNotFound. Nobody else
// changes it until the transaction ends.
func Lock(ctx context.Context, tx *store.Tx, org string, kind Kind) (Object, error) {
	row, err := tx.LockPortalObject(ctx, db.LockPortalObjectParams{OrgID: org, Kind: string(kind)})
	return row, store.Translate(err)
}

// Create stores the Kind, ID and Body of an object that the author's organisation
// does not have.
func Create(ctx context.Context, tx *store.Tx, by store.Author, o *Object) error {
	if err := tx.InsertPortalObject(ctx, db.InsertPortalObjectParams{OrgID: by.Org, Kind: o.Kind, ID: o.ID, Body: o.Body}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "created", Kind: auditKind(o.Kind), ID: o.ID, After: o.Body})
}

// Replace stores another body of an object as Lock returned it, and returns its new
// version.
func Replace(ctx context.Context, tx *store.Tx, by store.Author, o *Object, body []byte) (version int64, err error) {
	version, err = tx.UpdatePortalObject(ctx, db.UpdatePortalObjectParams{OrgID: by.Org, Kind: o.Kind, Body: body})
	if err != nil {
		return 0, err
	}
	return version, tx.Audit(ctx, by, store.Deed{Action: "updated", Kind: auditKind(o.Kind), ID: o.ID, Before: o.Body, After: body})
}

// Current refuses a change of an object that is not at the version that the caller
// saw, 0 for any.
func Current(have, current int64) error {
	if have != 0 && have != current {
		return &store.ConflictError{Kind: store.Stale, Current: current}
	}
	return nil
}

// auditKind names a kind of object in the audit log, where there are other
// configurations.
func auditKind(kind string) string { return "portal_" + kind }
