package store

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/admin/store/db"
)

// DeveloperFilter filters and orders a list of developers.
type DeveloperFilter struct {
	Prefix   string         // begins the address, in any case
	Inactive *bool          // nil: both
	Order    DeveloperOrder // "": ByAddress
}

// A DeveloperOrder is the order of a list.
type DeveloperOrder string

// The orders.
const (
	ByAddress     DeveloperOrder = "email"
	ByAddressDown DeveloperOrder = "-email"
	ByAge         DeveloperOrder = "created_at"
	ByAgeDown     DeveloperOrder = "-created_at"
)

// lastCharacter comes after every character that an address may begin with.
const lastCharacter = "\U0010FFFF"

// ListDevelopers returns one page of an organisation's developers, and their total
// number. A page has at most 1,000.
func (s *Store) ListDevelopers(ctx context.Context, org string, f DeveloperFilter, page Page) ([]Developer, int64, error) {
	q := s.queries
	last := f.Prefix + lastCharacter
	total, err := q.CountDevelopers(ctx, db.CountDevelopersParams{OrgID: org, First: f.Prefix, Last: last, Inactive: f.Inactive})
	if err != nil {
		return nil, 0, translate(err)
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
	return rows, total, translate(err)
}

// Holdings are what a developer has.
type Holdings struct {
	Keys          map[string][]string         // policies by the key's hash
	Subscriptions map[string]string           // the key's hash by policy
	Clients       map[string][]db.OauthClient // by policy; without secrets
}

// HoldingsOf returns what developers have, by id, in three statements. Every developer
// has an entry.
func (s *Store) HoldingsOf(ctx context.Context, developers []Developer) (map[string]*Holdings, error) {
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
	keys, err := s.queries.KeysOfDevelopers(ctx, ids)
	if err != nil {
		return nil, translate(err)
	}
	for _, k := range keys {
		all[k.DeveloperID].Keys[k.KeyHash] = k.Policies
	}
	subscriptions, err := s.queries.SubscriptionsOfDevelopers(ctx, ids)
	if err != nil {
		return nil, translate(err)
	}
	for _, s := range subscriptions {
		all[s.DeveloperID].Subscriptions[s.PolicyID] = s.KeyHash
	}
	clients, err := s.queries.ClientsOfDevelopers(ctx, ids)
	if err != nil {
		return nil, translate(err)
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
