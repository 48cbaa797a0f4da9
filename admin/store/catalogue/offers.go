package catalogue

import (
	"context"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// API is what developers may know of an API.
type API = db.OfferedAPIsRow

// Policy is a policy that an entry offers.
type Policy = db.OfferedPoliciesRow

// Offers returns one page of the entries that developers see, in the catalogue's
// order, and how many there are in all: those that are shown, and whose API and
// policy are there and in use.
func Offers(ctx context.Context, st *store.Store, org, prefix string, page store.Page) ([]Entry, int64, error) {
	prefix = prefixOf(prefix)
	total, err := st.Read().CountOffers(ctx, db.CountOffersParams{OrgID: org, Prefix: prefix})
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	rows, err := st.Read().ListOffers(ctx, db.ListOffersParams{OrgID: org, Prefix: prefix, Max: page.Limit(), Skip: page.Offset()})
	return rows, total, store.Translate(err)
}

// Offer returns an entry that developers see, or store.ErrNotFound.
func Offer(ctx context.Context, st *store.Store, org, id string) (Entry, error) {
	row, err := st.Read().Offer(ctx, db.OfferParams{OrgID: org, ID: id})
	return row, store.Translate(err)
}

// Behind returns the APIs and policies that some entries name, by their ids.
func Behind(ctx context.Context, st *store.Store, org string, entries []Entry) (map[string]*API, map[string]*Policy, error) {
	l := columns(org, entries)
	apis, err := st.Read().OfferedAPIs(ctx, db.OfferedAPIsParams{OrgID: org, IDs: l.APIs})
	if err != nil {
		return nil, nil, store.Translate(err)
	}
	policies, err := st.Read().OfferedPolicies(ctx, db.OfferedPoliciesParams{OrgID: org, IDs: l.Policies})
	if err != nil {
		return nil, nil, store.Translate(err)
	}
	byAPI, byPolicy := make(map[string]*API, len(apis)), make(map[string]*Policy, len(policies))
	for i := range apis {
		byAPI[apis[i].ID] = &apis[i]
	}
	for i := range policies {
		byPolicy[policies[i].ID] = &policies[i]
	}
	return byAPI, byPolicy, nil
}
