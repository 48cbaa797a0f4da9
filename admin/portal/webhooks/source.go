package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

// A source is an API with the portal_webhook outputs of its streams.
type source struct {
	store.EventSource
	api string
	*outputs
}

// outputs are those of one edition of an API.
type outputs struct {
	edition store.EventEdition
	now     []definition.PortalOutput
	former  []formerOutput
}

// A formerOutput is one that was changed or removed. Gateways pass messages of streams that
// are being stopped on for a while.
type formerOutput struct {
	definition.PortalOutput
	until time.Time
}

// Bounds of what is remembered of APIs.
const (
	maxSources  = 1000
	maxFormer   = 64
	formerGrace = 2 * time.Minute
)

// sources remembers the outputs of APIs: a definition may be as large as a megabyte, and
// messages are many.
type sources struct {
	mu    sync.Mutex
	known map[string]*outputs // by the id of the API
}

func (s *sources) get(api string) *outputs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[api]
}

// put remembers the outputs of an API, and for a while those that it had before.
func (s *sources) put(api string, next *outputs, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.known[api]; was != nil {
		next.former = formerOutputs(was, next.now, now)
	}
	if len(s.known) >= maxSources {
		clear(s.known)
	}
	s.known[api] = next
}

// formerOutputs returns the outputs that are not any more.
func formerOutputs(was *outputs, next []definition.PortalOutput, now time.Time) []formerOutput {
	var former []formerOutput
	for _, one := range was.former {
		if now.Before(one.until) {
			former = append(former, one)
		}
	}
	for _, one := range was.now {
		if !slices.Contains(next, one) {
			former = append(former, formerOutput{one, now.Add(formerGrace)})
		}
	}
	return former[max(0, len(former)-maxFormer):]
}

// sourceOf returns an API, or nil if there is none with that id.
func (s *Service) sourceOf(ctx context.Context, api string) (*source, error) {
	row, err := s.deps.Store.EventSource(ctx, api)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if known := s.sources.get(api); known != nil && known.edition == row.Edition {
		return &source{row, api, known}, nil
	}
	all, err := s.outputsOf(ctx, row.Org, api)
	if err != nil {
		return nil, err
	}
	found := &outputs{edition: row.Edition, now: all}
	s.sources.put(api, found, s.deps.Now())
	return &source{row, api, found}, nil
}

// outputsOf returns the outputs of an API as it is stored.
func (s *Service) outputsOf(ctx context.Context, org, id string) ([]definition.PortalOutput, error) {
	row, err := s.deps.Store.APIByID(ctx, org, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	api := new(definition.API)
	if err := json.Unmarshal(row.Definition, api); err != nil {
		return nil, fmt.Errorf("reading the definition of API %s: %w", id, err)
	}
	var failed error
	all, err := api.PortalOutputs(func(ref definition.SecretRef) (string, error) {
		value, err := s.definitionSecret(ctx, org, ref)
		if errors.Is(err, store.ErrUnavailable) {
			failed = err
		}
		return value, err
	})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		s.deps.Log.Error("messages of portal_webhook outputs of an API cannot be checked, and are refused", "api", id, "org", org, "err", err)
	}
	return all, nil
}

// definitionSecret returns a sealed secret that a definition refers to.
func (s *Service) definitionSecret(ctx context.Context, org string, ref definition.SecretRef) (string, error) {
	if ref.Kind != definition.SealedSecret {
		return "", errors.New("is read by gateways alone, and not by the portal; use a sealed secret, {secret:NAME}")
	}
	sealed, err := s.deps.Store.SealedSecret(ctx, org, ref.Name)
	if errors.Is(err, store.ErrNotFound) {
		return "", definition.ErrNoSecret
	}
	if err != nil {
		return "", err
	}
	value, err := s.deps.MasterKey.Open(sealed, store.SecretPlace(org, ref.Name))
	return string(value), err
}

// keys returns those that messages with the type of an event may be signed with.
func (o *outputs) keys(e *StreamEvent, now time.Time) (keys [][]byte) {
	of := func(out definition.PortalOutput) {
		if out.Stream == e.Stream && out.EventType == e.Type {
			keys = append(keys, webhooksign.Key(out.Secret))
		}
	}
	for _, one := range o.now {
		of(one)
	}
	for _, one := range o.former {
		if now.Before(one.until) {
			of(one.PortalOutput)
		}
	}
	return keys
}
