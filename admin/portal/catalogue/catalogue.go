// Package catalogue is what an organisation's portal offers: the catalogue and its
// entries, the documentation of APIs, and the configuration of the portal.
package catalogue

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// Service manages catalogues and configurations of portals. Make one with New. It is
// safe for concurrent use.
type Service struct {
	store     *store.Store
	identify  Identify
	documents *Documents
	clear     bool   // keys are stored in clear
	home      string // organisation whose portal visitors see; "": the first
}

// Identify returns the developer of a credential, or store.ErrNotFound.
type Identify func(ctx context.Context, credential []byte) (rest.Principal, error)

// New returns a Service.
func New(st *store.Store, identify Identify, docs *Documents) *Service {
	return &Service{store: st, identify: identify, documents: docs}
}

// StoresKeysInClear returns the service for an admin whose keys are not hashed, which
// HashKeys of its configurations says.
func (s *Service) StoresKeysInClear(clear bool) *Service {
	s.clear = clear
	return s
}

// ShowsVisitors returns the service for a portal of one organisation; "": the first.
func (s *Service) ShowsVisitors(org string) *Service {
	s.home = org
	return s
}

// Home returns the organisation whose portal visitors see who name none.
func (s *Service) Home(ctx context.Context) (string, error) {
	if s.home == "" {
		return s.store.FirstOrg(ctx)
	}
	exists, err := s.store.OrgExists(ctx, s.home)
	if err == nil && !exists {
		err = rest.NotFound("The setting portal.organisation names " + s.home + ", and there is no such organisation")
	}
	return s.home, err
}

// Configuration returns the configuration of an organisation's portal, or the defaults
// if none is stored. The caller may change it.
func (s *Service) Configuration(ctx context.Context, org string) (*model.Configuration, error) {
	row, err := s.store.PortalObject(ctx, org, store.PortalConfiguration)
	if errors.Is(err, store.ErrNotFound) {
		return s.defaults(org), nil
	}
	if err != nil {
		return nil, err
	}
	return s.configurationOf(&row)
}

func (s *Service) defaults(org string) *model.Configuration {
	c := Defaults(org)
	c.HashKeys = !s.clear
	return c
}

// ConfigurationFor returns the configuration for requests for an entry.
func (s *Service) ConfigurationFor(ctx context.Context, org string, e *model.Entry) (*model.Configuration, error) {
	c, err := s.Configuration(ctx, org)
	if err != nil {
		return nil, err
	}
	return Override(c, e), nil
}

// Override returns c with what an entry overrides for requests: fields, approval,
// redirect, selection and the limit of OAuth clients. Other members are the
// organisation's alone.
func Override(c *model.Configuration, e *model.Entry) *model.Configuration {
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
func (s *Service) Entry(ctx context.Context, org, id string) (*model.Entry, error) {
	row, err := s.store.CatalogueEntry(ctx, org, id)
	if err != nil {
		return nil, err
	}
	return entryOf(&row)
}

// EntryByPolicy returns the entry that offers a policy, or store.ErrNotFound. Of
// several it is one that is shown, and then the first of the catalogue.
func (s *Service) EntryByPolicy(ctx context.Context, org, policy string) (*model.Entry, error) {
	row, err := s.store.CatalogueEntryByPolicy(ctx, org, policy)
	if err != nil {
		return nil, err
	}
	return entryOf(&row)
}

func entryOf(row *store.CatalogueEntry) (*model.Entry, error) {
	e, err := model.Parse[model.Entry](row.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the stored catalogue entry %s: %w", row.ID, corrupt(err))
	}
	e.ID = row.ID
	return e, nil
}

func (s *Service) configurationOf(row *store.PortalObject) (*model.Configuration, error) {
	c, err := model.Parse[model.Configuration](row.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the stored configuration of the portal: %w", corrupt(err))
	}
	c.ID, c.OrgID, c.HashKeys = row.ID, row.OrgID, !s.clear
	return c, nil
}

// corrupt hides *definition.Problems of a stored object, which would be answered as a
// fault of the caller.
func corrupt(err error) error { return errors.New(err.Error()) }
