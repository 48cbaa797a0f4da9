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
