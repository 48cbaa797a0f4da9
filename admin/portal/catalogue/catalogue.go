// Package catalogue is what an organisation's portal offers, and how that portal
// works: the catalogue and its entries, and the configuration.
package catalogue

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/portal/documents"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/catalogue"
)

// Service answers for catalogues and configurations of portals. Make one with New.
// It is safe for concurrent use.
type Service struct {
	store     *store.Store
	identify  Identify
	documents *documents.Service
}

// Identify returns which developer has a credential; store.ErrNotFound is nobody.
type Identify func(ctx context.Context, credential []byte) (rest.Principal, error)

// New returns a Service.
func New(st *store.Store, identify Identify, docs *documents.Service) *Service {
	return &Service{store: st, identify: identify, documents: docs}
}

// Configuration returns how an organisation's portal works; one that stored nothing
// has the defaults. The caller may change it.
func (s *Service) Configuration(ctx context.Context, org string) (*record.Configuration, error) {
	row, err := kept.Get(ctx, s.store, org, kept.Configuration)
	if errors.Is(err, store.ErrNotFound) {
		return Defaults(org), nil
	}
	if err != nil {
		return nil, err
	}
	return configurationOf(&row)
}

// ConfigurationFor returns how requests for an entry go: as everywhere in the
// organisation's portal, unless the entry says otherwise.
func (s *Service) ConfigurationFor(ctx context.Context, org string, e *record.Entry) (*record.Configuration, error) {
	c, err := s.Configuration(ctx, org)
	if err != nil {
		return nil, err
	}
	return Override(c, e), nil
}

// Override returns c with what an entry says otherwise about requests for it:
// fields, approval, and where the browser is sent instead. Who can enter the
// portal, and its letters, are the organisation's alone.
func Override(c *record.Configuration, e *record.Entry) *record.Configuration {
	if e == nil || e.Config == nil || !e.Config.Override {
		return c
	}
	mixed := *c
	mixed.KeyRequestFields = e.Config.KeyRequestFields
	mixed.RequireKeyApproval = e.Config.RequireKeyApproval
	mixed.RedirectOnKeyRequest, mixed.RedirectTo = e.Config.RedirectOnKeyRequest, e.Config.RedirectTo
	mixed.EnableMultiSelection = e.Config.EnableMultiSelection
	mixed.OAuthUsageLimit = e.Config.OAuthUsageLimit
	return &mixed
}

// Entry returns an entry of an organisation's catalogue, shown or not, or
// store.ErrNotFound.
func (s *Service) Entry(ctx context.Context, org, id string) (*record.Entry, error) {
	row, err := kept.EntryByID(ctx, s.store, org, id)
	if err != nil {
		return nil, err
	}
	return entryOf(&row)
}

// EntryByPolicy returns the entry that offers a policy, or store.ErrNotFound. Of
// several it is one that is shown, and then the first of the catalogue.
func (s *Service) EntryByPolicy(ctx context.Context, org, policy string) (*record.Entry, error) {
	row, err := kept.EntryByPolicy(ctx, s.store, org, policy)
	if err != nil {
		return nil, err
	}
	return entryOf(&row)
}

func entryOf(row *kept.Entry) (*record.Entry, error) {
	e, err := record.Parse[record.Entry](row.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the stored catalogue entry %s: %w", row.ID, corrupt(err))
	}
	e.ID = row.ID
	return e, nil
}

func configurationOf(row *kept.Object) (*record.Configuration, error) {
	c, err := record.Parse[record.Configuration](row.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the stored configuration of the portal: %w", corrupt(err))
	}
	c.ID, c.OrgID = row.ID, row.OrgID
	return c, nil
}

// corrupt hides what is wrong with a stored record from callers: it is no problem
// of what they sent.
func corrupt(err error) error { return errors.New(err.Error()) }
