package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// OfferedAPI is what developers may know of an API.
type OfferedAPI = db.OfferedAPIsRow

// OfferedPolicy is a policy that an entry offers.
type OfferedPolicy = db.OfferedPoliciesRow

// ListOffers returns one page of the entries that developers see, in the catalogue's
// order, and how many there are in all: those that are shown, and whose API and
// policy are there and in use.
func (s *Store) ListOffers(ctx context.Context, org string, f CatalogueFilter, page Page) ([]CatalogueEntry, int64, error) {
	prefix := namePrefix(f.Prefix)
	total, err := s.queries.CountOffers(ctx, db.CountOffersParams{OrgID: org, Prefix: prefix, API: f.API, Policy: f.Policy})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListOffers(ctx, db.ListOffersParams{OrgID: org, Prefix: prefix, API: f.API, Policy: f.Policy, Max: page.Limit(), Skip: page.Offset()})
	return rows, total, translate(err)
}

// Offer returns an entry that developers see, or ErrNotFound.
func (s *Store) Offer(ctx context.Context, org, id string) (CatalogueEntry, error) {
	row, err := s.queries.Offer(ctx, db.OfferParams{OrgID: org, ID: id})
	return row, translate(err)
}

// OfferTargets returns the APIs and policies that some entries name, by their ids.
func (s *Store) OfferTargets(ctx context.Context, org string, entries []CatalogueEntry) (map[string]*OfferedAPI, map[string]*OfferedPolicy, error) {
	l := columnsOf(org, entries)
	apis, err := s.queries.OfferedAPIs(ctx, db.OfferedAPIsParams{OrgID: org, IDs: l.APIs})
	if err != nil {
		return nil, nil, translate(err)
	}
	policies, err := s.queries.OfferedPolicies(ctx, db.OfferedPoliciesParams{OrgID: org, IDs: l.Policies})
	if err != nil {
		return nil, nil, translate(err)
	}
	byAPI, byPolicy := make(map[string]*OfferedAPI, len(apis)), make(map[string]*OfferedPolicy, len(policies))
	for i := range apis {
		byAPI[apis[i].ID] = &apis[i]
	}
	for i := range policies {
		byPolicy[policies[i].ID] = &policies[i]
	}
	return byAPI, byPolicy, nil
}
