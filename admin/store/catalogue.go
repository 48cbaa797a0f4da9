package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// PortalObject is an organisation's catalogue, without its entries, or the configuration,
// the brand, the logo, the pages or the menu of its portal: JSON, and what is kept beside
// it.
type PortalObject = db.PortalObject

// PortalObjectKind is the kind of an object.
type PortalObjectKind string

// The kinds.
const (
	PortalCatalogue     PortalObjectKind = "catalogue"
	PortalConfiguration PortalObjectKind = "configuration"
	PortalBrand         PortalObjectKind = "brand"
	PortalLogo          PortalObjectKind = "logo"
	PortalPages         PortalObjectKind = "pages"
	PortalMenus         PortalObjectKind = "menus"

	webhookObjects PortalObjectKind = "hooks" // those that definitions refer to; see Webhooks
)

// CatalogueEntry is one of a catalogue: its JSON, and what is kept beside it.
type CatalogueEntry = db.CatalogueEntry

// OrgExists reports whether there is an organisation.
func (s *Store) OrgExists(ctx context.Context, org string) (bool, error) {
	exists, err := s.queries.OrgExists(ctx, org)
	return exists, translate(err)
}

// PortalObject returns one of an organisation's objects, or ErrNotFound.
func (s *Store) PortalObject(ctx context.Context, org string, kind PortalObjectKind) (PortalObject, error) {
	row, err := s.queries.PortalObject(ctx, db.PortalObjectParams{OrgID: org, Kind: string(kind)})
	return row, translate(err)
}

// CatalogueEntry returns an organisation's entry, or ErrNotFound.
func (s *Store) CatalogueEntry(ctx context.Context, org, id string) (CatalogueEntry, error) {
	row, err := s.queries.CatalogueEntry(ctx, db.CatalogueEntryParams{OrgID: org, ID: id})
	return row, translate(err)
}

// CatalogueEntryByPolicy returns the entry that offers a policy, or ErrNotFound. Of
// several it is one that is shown, and then the first of the catalogue.
func (s *Store) CatalogueEntryByPolicy(ctx context.Context, org, policy string) (CatalogueEntry, error) {
	row, err := s.queries.CatalogueEntryByPolicy(ctx, db.CatalogueEntryByPolicyParams{OrgID: org, PolicyID: policy})
	return row, translate(err)
}

// LockPortalObject returns one of an organisation's objects, locked until the
// transaction ends, or ErrNotFound.
func (tx *Tx) LockPortalObject(ctx context.Context, org string, kind PortalObjectKind) (PortalObject, error) {
	row, err := tx.Queries.LockPortalObject(ctx, db.LockPortalObjectParams{OrgID: org, Kind: string(kind)})
	return row, translate(err)
}

// CreatePortalObject adds an object that the author's organisation does not have.
func (tx *Tx) CreatePortalObject(ctx context.Context, by Author, o *PortalObject) error {
	if err := tx.Queries.InsertPortalObject(ctx, db.InsertPortalObjectParams{OrgID: by.Org, Kind: o.Kind, ID: o.ID, Body: o.Body}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "created", Kind: portalAuditKind(o.Kind), ID: o.ID, After: o.Body})
}

// ReplacePortalObject replaces the body of a locked object and returns its new version.
func (tx *Tx) ReplacePortalObject(ctx context.Context, by Author, o *PortalObject, body []byte) (version int64, err error) {
	version, err = tx.Queries.UpdatePortalObject(ctx, db.UpdatePortalObjectParams{OrgID: by.Org, Kind: o.Kind, Body: body})
	if err != nil {
		return 0, err
	}
	return version, tx.Audit(ctx, by, AuditEntry{Action: "updated", Kind: portalAuditKind(o.Kind), ID: o.ID, Before: o.Body, After: body})
}

// portalAuditKind names a kind of object in the audit log, where there are other
// configurations.
func portalAuditKind(kind string) string { return "portal_" + kind }
