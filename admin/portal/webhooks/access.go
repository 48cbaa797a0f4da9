package webhooks

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/rights"
)

// Developers get events of APIs that they may call: with one of their keys, by its own access
// rights or by its policies as gateways apply them; or because the API is keyless, and the
// catalogue offers it.

// A decision is whether a key gives access to an API. It holds for one edition of the key
// and of the configuration.
type decision struct {
	key      string // hash
	version  int64
	updated  int64 // nanoseconds since 1970
	revision int64
	api      string
}

// maxDecisions bounds the decisions that are remembered.
const maxDecisions = 100_000

// decisions remembers whether keys give access to APIs.
type decisions struct {
	mu    sync.Mutex
	known map[decision]bool
}

func (d *decisions) get(of decision) (may, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	may, known = d.known[of]
	return may, known
}

func (d *decisions) put(of decision, may bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxDecisions {
		clear(d.known)
	}
	d.known[of] = may
}

// listeners returns the webhooks that get an event: each that subscribes to its type and
// whose developer may call the API.
func (s *Service) listeners(ctx context.Context, src *source, e *StreamEvent) ([]delivery.Receiver, error) {
	if src.Open {
		rows, err := s.deps.Store.OpenEventListeners(ctx, src.Org, e.Type)
		return receiversOf(rows, func(*store.EventListener) bool { return true }), err
	}
	rows, err := s.deps.Store.EventListeners(ctx, src.Org, src.api, e.Type)
	if err != nil {
		return nil, err
	}
	about := func(l *store.EventListener) decision {
		return decision{l.KeyHash, l.Version, l.UpdatedAt.UnixNano(), src.Revision, src.api}
	}
	var open []string
	for i := range rows {
		if _, known := s.decisions.get(about(&rows[i])); !known {
			open = append(open, rows[i].KeyHash)
		}
	}
	decided := make(map[string]bool)
	if len(open) > 0 {
		all, err := s.rightsOf(ctx, src.Org, open)
		if err != nil {
			return nil, err
		}
		for hash, r := range all {
			_, decided[hash] = r.For(src.api)
		}
	}
	return receiversOf(rows, func(l *store.EventListener) bool {
		of := about(l)
		if may, known := s.decisions.get(of); known {
			return may
		}
		s.decisions.put(of, decided[l.KeyHash])
		return decided[l.KeyHash]
	}), nil
}

// receiversOf returns the webhooks of listeners, each once.
func receiversOf(rows []store.EventListener, may func(*store.EventListener) bool) (all []delivery.Receiver) {
	seen := make(map[string]bool)
	for i := range rows {
		if id := rows[i].ID; !seen[id] && may(&rows[i]) {
			seen[id] = true
			all = append(all, delivery.Receiver{Webhook: id, Developer: rows[i].DeveloperID})
		}
	}
	return all
}

// rightsOf returns what keys may do, by their hashes. Keys that cannot be used are left out,
// as are those that name no API: developers have none that may call every one.
func (s *Service) rightsOf(ctx context.Context, org string, hashes []string) (map[string]*rights.Rights, error) {
	slices.Sort(hashes)
	keys, err := s.deps.Store.KeysByHash(ctx, org, slices.Compact(hashes))
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range keys {
		names = append(names, keys[i].Policies...)
	}
	slices.Sort(names)
	found, err := s.deps.Store.FindPolicies(ctx, org, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	bodies := make([][]byte, 0, len(found))
	for _, one := range found {
		bodies = append(bodies, one.Body)
	}
	policies, err := store.PolicySet(bodies)
	if err != nil {
		return nil, fmt.Errorf("reading the policies of organisation %s: %w", org, err)
	}
	all := make(map[string]*rights.Rights, len(keys))
	for i := range keys {
		session, err := store.SessionOf(&keys[i])
		if err != nil {
			return nil, err
		}
		r, err := rights.Effective(session, policies)
		if err != nil || r.Master || r.Inactive.Value {
			continue
		}
		all[keys[i].KeyHash] = r
	}
	return all, nil
}

// maxOwnKeys bounds the keys of a developer that are looked at to list events.
const maxOwnKeys = 500

// typesFor returns the types of events that the webhooks of a developer can subscribe to, or
// those of the organisation without one. Beside the portal's own these are events of streams
// whose API the catalogue offers, or that the developer may call.
func (s *Service) typesFor(ctx context.Context, org, developer string) ([]EventType, error) {
	all := types(developer != "")
	if developer == "" {
		return all, nil
	}
	apis, err := s.deps.Store.EventAPIs(ctx, org)
	if err != nil || len(apis) == 0 {
		return all, err
	}
	hashes, err := s.deps.Store.DeveloperKeyHashes(ctx, org, developer, maxOwnKeys)
	if err != nil {
		return nil, err
	}
	own, err := s.rightsOf(ctx, org, hashes)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int)
	for _, api := range apis {
		may := api.Keyless && api.Offered || mayCall(own, api.ID)
		if !may && !api.Offered {
			continue
		}
		for _, event := range api.Events {
			if _, ok := at[event]; !ok {
				at[event] = len(all)
				all = append(all, EventType{Type: event, When: "a stream published it"})
			}
			t := &all[at[event]]
			t.APIs = append(t.APIs, EventAPI{api.ID, api.Name, may})
		}
	}
	return all, nil
}

func mayCall(own map[string]*rights.Rights, api string) bool {
	for _, r := range own {
		if _, ok := r.For(api); ok {
			return true
		}
	}
	return false
}

// owner is the developer whose webhook it is, "" for the organisation's.
func owner(r *store.Webhook) string {
	if r.DeveloperID == nil {
		return ""
	}
	return *r.DeveloperID
}
