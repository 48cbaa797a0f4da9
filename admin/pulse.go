package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

func (s *Server) pulseRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/pulse", Summary: "Get the few numbers after whose change pages are read again", Tag: "Configuration", Role: rest.Viewer,
			Reply: pulse{}, Wrong: []int{304}, Handle: s.getPulse,
		},
		{
			Method: "GET", Path: "/api/search", Summary: "Find objects of all kinds, at most five of each", Tag: "Configuration", Role: rest.Viewer,
			Query: []string{"q"}, Reply: searchResults{}, Wrong: []int{400}, Handle: s.search,
		},
	}
}

// pulse is what pages follow.
type pulse struct {
	// Revision of the configuration in force; it grows with each change.
	Revision int64 `json:"revision"`
	// Number of reloads that were asked for without a change.
	Generation int64 `json:"generation"`
	// Number of gateways that reported within two minutes.
	Gateways int `json:"gateways"`
	// Number of those gateways that serve the revision without an error.
	UpToDate int `json:"up_to_date"`
	// Key requests that wait for a decision; 1000 stands for more.
	PendingRequests int64 `json:"pending_requests"`
	// Messages that were given up; 1000 stands for more.
	FailedDeliveries int64 `json:"failed_deliveries"`
	// Time at which a gateway last handed over what it counted (RFC 3339); empty: none has yet.
	UsageUntil string `json:"usage_until"`
	// Version of the admin's program.
	Version string `json:"version"`
}

// pulseHeld is how long a pulse is held in memory: any number of tabs cost one look a
// second.
const pulseHeld = time.Second

// maxPulses bounds the organisations whose pulse is held.
const maxPulses = 1000

// pulses are the pulses of organisations.
type pulses struct {
	mu   sync.Mutex
	held map[string]*heldPulse
}

// heldPulse is the pulse of one organisation. Who reads it holds the lock.
type heldPulse struct {
	mu   sync.Mutex
	at   time.Time
	body []byte
	tag  string
}

// of returns the pulse of an organisation, which may be empty.
func (p *pulses) of(org string) *heldPulse {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.held) >= maxPulses || p.held == nil {
		p.held = make(map[string]*heldPulse)
	}
	if p.held[org] == nil {
		p.held[org] = new(heldPulse)
	}
	return p.held[org]
}

func (s *Server) getPulse(ctx context.Context, c *rest.Call) (any, error) {
	body, tag, err := s.pulseOf(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	if string(c.HTTP.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)) == tag {
		c.HTTP.Response.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		rest.WriteJSON(c.HTTP, fasthttp.StatusOK, body)
	}
	c.HTTP.Response.Header.Set(fasthttp.HeaderCacheControl, "private, no-cache")
	c.HTTP.Response.Header.Set(fasthttp.HeaderETag, tag)
	return nil, nil
}

// pulseOf returns the pulse of an organisation, at most a second old, and its ETag.
func (s *Server) pulseOf(ctx context.Context, org string) (body []byte, tag string, err error) {
	held := s.pulses.of(org)
	held.mu.Lock()
	defer held.mu.Unlock()
	if time.Since(held.at) < pulseHeld {
		return held.body, held.tag, nil
	}
	state, err := s.configState(ctx)
	if err != nil {
		return nil, "", err
	}
	row, err := s.deps.Store.Pulse(ctx, org)
	if err != nil {
		return nil, "", err
	}
	now := pulse{
		Revision: state.Revision, Generation: state.Generation, Gateways: state.Gateways, UpToDate: state.UpToDate,
		PendingRequests: row.PendingRequests, FailedDeliveries: row.FailedDeliveries, Version: s.deps.Version,
	}
	if row.UsageUntil.Unix() > 0 {
		now.UsageUntil = row.UsageUntil.UTC().Format(time.RFC3339)
	}
	if body, err = rest.Encode(now); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(body)
	held.at, held.body, held.tag = time.Now(), body, strconv.Quote(hex.EncodeToString(sum[:8]))
	return held.body, held.tag, nil
}

// searchResults are what a search found.
type searchResults struct {
	// Objects that were found, at most 5 of each kind; users for admins only.
	Results []searchResult `json:"results"`
}

// searchResult is one object.
type searchResult struct {
	// Kind of the object.
	Kind string `json:"kind" enum:"api,policy,key,developer,catalogue,document,user"`
	// Id of the object; of a key its hash.
	ID string `json:"id"`
	// Name of the object: the alias of a key, the e-mail address of a developer or user.
	Name string `json:"name"`
	// Listen path of an API, kind of a document, role of a user, or state of other objects.
	Detail string `json:"detail"`
}

// search finds objects by name or id. Users are found by admins alone.
func (s *Server) search(ctx context.Context, c *rest.Call) (any, error) {
	const most = 200
	text := c.Query("q")
	if text == "" || len(text) > most {
		return nil, rest.BadRequest(fmt.Sprintf("q must have 1…%d bytes", most))
	}
	rows, err := s.deps.Store.Search(ctx, c.Who.Org, text, c.Who.Role == rest.Admin)
	if err != nil {
		return nil, err
	}
	found := searchResults{Results: make([]searchResult, 0, len(rows))}
	for _, r := range rows {
		if r.Kind == "key" {
			r.ID = s.deps.KeyOptions.Hasher.Shown(r.ID)
		}
		found.Results = append(found.Results, searchResult{Kind: r.Kind, ID: r.ID, Name: r.Name, Detail: r.Detail})
	}
	return found, nil
}
