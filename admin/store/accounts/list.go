package accounts

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// Filter says which developers a list holds, and in which order.
type Filter struct {
	Prefix   string // begins the address, in any case
	Inactive *bool  // nil: both
	Order    Order  // "": ByAddress
}

// An Order of a list.
type Order string

// The orders.
const (
	ByAddress     Order = "email"
	ByAddressDown Order = "-email"
	ByAge         Order = "created_at"
	ByAgeDown     Order = "-created_at"
)

// beyond comes after every character that an address may begin with.
const beyond = "\U0010FFFF"

// List returns one page of an organisation's developers, and how many there are
// in all. A page has at most 1,000.
func List(ctx context.Context, st *store.Store, org string, f Filter, page store.Page) ([]Developer, int64, error) {
	q := st.Read()
	last := f.Prefix + beyond
	total, err := q.CountDevelopers(ctx, db.CountDevelopersParams{OrgID: org, First: f.Prefix, Last: last, Inactive: f.Inactive})
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	wanted := db.DevelopersByEmailParams{
		OrgID: org, First: f.Prefix, Last: last, Inactive: f.Inactive, Skip: page.Offset(), Max: page.Limit(),
	}
	var rows []Developer
	switch f.Order {
	case "", ByAddress:
		rows, err = q.DevelopersByEmail(ctx, wanted)
	case ByAddressDown:
		rows, err = q.DevelopersByEmailDown(ctx, db.DevelopersByEmailDownParams(wanted))
	case ByAge:
		rows, err = q.DevelopersByCreation(ctx, db.DevelopersByCreationParams(wanted))
	case ByAgeDown:
		rows, err = q.DevelopersByCreationDown(ctx, db.DevelopersByCreationDownParams(wanted))
	default:
		err = fmt.Errorf("listing developers: no order %q", f.Order)
	}
	return rows, total, store.Translate(err)
}

// Holdings are what a developer has.
type Holdings struct {
	Keys          map[string][]string         // policies by the key's hash
	Subscriptions map[string]string           // the key's hash by policy
	Clients       map[string][]db.OauthClient // by policy; without secrets
}

// HoldingsOf returns what developers have, by id, in three statements however
// many they are. Every developer has an entry.
func HoldingsOf(ctx context.Context, st *store.Store, developers []Developer) (map[string]*Holdings, error) {
	all := make(map[string]*Holdings, len(developers))
	ids := make([]string, 0, len(developers))
	for _, d := range developers {
		ids = append(ids, d.ID)
		all[d.ID] = &Holdings{
			Keys: make(map[string][]string), Subscriptions: make(map[string]string), Clients: make(map[string][]db.OauthClient),
		}
	}
	if len(ids) == 0 {
		return all, nil
	}
	keys, err := st.Read().KeysOfDevelopers(ctx, ids)
	if err != nil {
		return nil, store.Translate(err)
	}
	for _, k := range keys {
		all[k.DeveloperID].Keys[k.KeyHash] = k.Policies
	}
	subscriptions, err := st.Read().SubscriptionsOfDevelopers(ctx, ids)
	if err != nil {
		return nil, store.Translate(err)
	}
	for _, s := range subscriptions {
		all[s.DeveloperID].Subscriptions[s.PolicyID] = s.KeyHash
	}
	clients, err := st.Read().ClientsOfDevelopers(ctx, ids)
	if err != nil {
		return nil, store.Translate(err)
	}
	for _, c := range clients {
		of := all[c.DeveloperID].Clients
		of[c.PolicyID] = append(of[c.PolicyID], db.OauthClient{
			ClientID: c.ClientID, PolicyID: c.PolicyID, RedirectUri: c.RedirectUri,
			AppDescription: c.AppDescription, UseCase: c.UseCase, CreatedAt: c.CreatedAt,
		})
	}
	return all, nil
}
