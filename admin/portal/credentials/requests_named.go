package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// named are the objects that the requests of one answer name, as the caller may see them.
type named struct {
	*Requests
	call    *rest.Call
	people  map[string]*model.Developer // by id
	entries map[string]*model.Entry     // by policy; nil: nothing offers it
}

func (s *Requests) namedBy(c *rest.Call) *named {
	return &named{Requests: s, call: c, people: make(map[string]*model.Developer), entries: make(map[string]*model.Entry)}
}

// developers reads the developers of requests that are not known yet.
func (n *named) developers(ctx context.Context, rows []store.KeyRequest) error {
	var wanted []store.Developer
	var ids []string
	for i := range rows {
		id := rows[i].DeveloperID
		if _, known := n.people[id]; !known {
			n.people[id] = nil
			ids, wanted = append(ids, id), append(wanted, store.Developer{ID: id})
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := n.d.Store.Requesters(ctx, n.call.Who.Org, ids)
	if err != nil {
		return err
	}
	has, err := n.d.Store.HoldingsOf(ctx, wanted)
	if err != nil {
		return err
	}
	for id, d := range found {
		n.people[id] = n.developer(&d, has[id])
	}
	return nil
}

// developer returns the developer of a request as it is shown.
func (n *named) developer(d *store.Requester, has *store.Holdings) *model.Developer {
	shown := &model.Developer{
		ID: d.ID, Email: d.Email, OrgID: n.call.Who.Org, Inactive: d.Inactive, DateCreated: d.CreatedAt.UTC().Format(time.RFC3339),
		Keys: make(map[string][]string), Subscriptions: make(map[string]string), OAuthClients: make(map[string][]model.Client),
	}
	_ = json.Unmarshal(d.Fields, &shown.Fields) // texts, which were checked before they were stored
	for hash, policies := range has.Keys {
		shown.Keys[n.d.Keys.PublicID(hash)] = policies
	}
	for policy, hash := range has.Subscriptions {
		shown.Subscriptions[policy] = n.d.Keys.PublicID(hash)
	}
	for policy, clients := range has.Clients {
		for _, one := range clients {
			shown.OAuthClients[policy] = append(shown.OAuthClients[policy], model.Client{
				ClientID: one.ClientID, RedirectURI: one.RedirectUri, AppDescription: one.AppDescription,
				UseCase: one.UseCase, DateCreated: one.CreatedAt.UTC().Format(time.RFC3339),
			})
		}
	}
	return shown
}

// entry returns the entry that offers a policy, nil if nothing does that the caller may
// see.
func (n *named) entry(ctx context.Context, policy string) (*model.Entry, error) {
	if e, known := n.entries[policy]; known {
		return e, nil
	}
	found, err := n.d.Catalogue.EntryByPolicy(ctx, n.call.Who.Org, policy)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	n.entries[policy] = nil
	if err == nil && (found.Show || n.call.Who.Role != rest.Developer) {
		n.entries[policy] = offered(found)
	}
	return n.entries[policy], nil
}

// offered returns the part of an entry that records of requests have.
func offered(e *model.Entry) *model.Entry {
	return &model.Entry{
		ID: e.ID, Name: e.Name, ShortDescription: e.ShortDescription, Show: e.Show, APIID: e.APIID, PolicyID: e.PolicyID,
		Documentation: e.Documentation, Version: e.Version, IsKeyless: e.IsKeyless, Fields: e.Fields, AuthType: e.AuthType,
	}
}
