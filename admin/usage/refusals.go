package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	rows "github.com/sluicegate/sluice/admin/store/usage"
	"github.com/sluicegate/sluice/internal/usage"
)

// Refusals is a page of records of refused requests.
type Refusals struct {
	// Records of the page, the newest first; of each key, and of each API without a known key, at most
	// the newest 100 are kept.
	Data []rows.Refusal `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
	// Number of records on all pages; 10000 stands for more.
	Total int64 `json:"total"`

	// All refused and failed calls of the range by reason, the most frequent first; those without a
	// record are counted, too.
	Counts []ReasonCount `json:"counts"`
	// End of the minutes or hours that counts are of.
	Until time.Time `json:"counted_until"`
	// Beginning of the minutes or hours that counts are of: a full minute, or a full hour in ranges of
	// more than 3 hours.
	Since time.Time `json:"counted_since"`
}

// ReasonCount counts the calls that were refused for a reason.
type ReasonCount struct {
	// Reason of the refusal, as metrics and logs have it.
	// Example: "rate_limit"
	Reason string `json:"reason"`
	// Number of the calls.
	Calls int64 `json:"calls"`
}

// OwnRefusal is what developers see of a refused request of their key.
type OwnRefusal struct {
	// X-Request-Id of the answer.
	ID string `json:"id"`
	// Time of the request.
	At time.Time `json:"at"`
	// Id of the API that the request reached.
	API string `json:"api_id"`
	// Name of that API; left out if it is gone.
	APIName string `json:"api_name,omitempty"`
	// Version of the API that the request selected; left out if the API has one only.
	Version string `json:"version,omitempty"`
	// Name of the stage that refused the request.
	Stage string `json:"stage"`
	// HTTP status of the answer.
	Status int `json:"status"`
	// Reason of the refusal.
	// Example: "rate_limit"
	Reason string `json:"reason"`
	// Message that the client got.
	Message string `json:"message,omitempty"`
	// Method of the request.
	Method string `json:"method,omitempty"`
	// Path of the request as it was sent, without the query.
	Path string `json:"path,omitempty"`
	// Limits of the key as they were at that time.
	Limits []usage.Counted `json:"limits,omitempty"`
	// GraphQL answer, or its beginning.
	Errors string `json:"errors,omitempty"`
	// Whether the API's service could not be reached; the request itself was in order.
	Upstream bool `json:"upstream,omitempty"`
}

// OwnRefusals is a page of the refused requests of a developer's key.
type OwnRefusals struct {
	// Records of the page, the newest first; at most the newest 100 are kept.
	Data []OwnRefusal `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
	// Number of records on all pages.
	Total int64 `json:"total"`
	// All refused and failed calls of the range by reason, the most frequent first; those without a
	// record are counted, too.
	Counts []ReasonCount `json:"counts"`
}

// refusalRoutes are the routes of the records of refused requests.
func (s *Service) refusalRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/refusals", Summary: "List the newest refused requests, of the last day unless asked otherwise", Tag: "Usage", Role: rest.Viewer,
			Query: append([]string{"api", "key", "reason", "from", "to"}, rest.Paging...), Reply: Refusals{}, Wrong: []int{400}, Handle: s.refusals,
		},
		{
			Method: "GET", Path: "/api/refusals/{id}", Summary: "Show a refused request by its X-Request-Id", Tag: "Usage", Role: rest.Viewer,
			Reply: rows.Refusal{}, Wrong: []int{404}, Handle: s.refusal,
		},
		{
			Method: "GET", Path: "/api/portal/me/keys/{key}/refusals", Summary: "List the newest refused requests of one's own key, of the last week unless asked otherwise", Tag: "Portal", Role: rest.Developer,
			Query: append([]string{"api", "reason", "from", "to"}, rest.Paging...), Reply: OwnRefusals{}, Wrong: []int{400, 404}, Handle: s.ownRefusals,
		},
	}
}

// longestRefusals is the longest range of a list of refused requests.
const longestRefusals = 90 * day

// parseRefusals parses the parameters of a list.
func parseRefusals(c *rest.Call, span time.Duration, now time.Time) (r *request, err error) {
	r = &request{step: "none", refused: true, api: c.Query("api"), reason: c.Query("reason"), status: -1}
	r.by.Reason = true
	if r.to, err = moment(c, "to", now); err != nil {
		return nil, err
	}
	if r.from, err = moment(c, "from", r.to.Add(-span)); err != nil {
		return nil, err
	}
	switch {
	case !r.from.Before(r.to):
		return nil, rest.BadRequest("from must be before to")
	case r.to.Sub(r.from) > longestRefusals:
		return nil, rest.BadRequest(fmt.Sprintf("from and to must be at most %d days apart", longestRefusals/day))
	}
	r.page, err = c.Page(false)
	return r, err
}

func (s *Service) refusals(ctx context.Context, c *rest.Call) (any, error) {
	r, err := parseRefusals(c, day, s.deps.Now())
	if err != nil {
		return nil, err
	}
	if c.HTTP.QueryArgs().Has("key") {
		key := c.Query("key")
		r.key = &key
	}
	return s.listRefusals(ctx, c.Who.Org, r)
}

// listRefusals returns a page of records, and the counts of all refused calls.
func (s *Service) listRefusals(ctx context.Context, org string, r *request) (*Refusals, error) {
	list, total, err := rows.Refusals(ctx, s.deps.Store, &rows.RefusalQuery{
		Org: org, Since: r.from, Until: r.to, API: r.api, Reason: r.reason, Key: r.key, Page: r.page,
	})
	if err != nil {
		return nil, err
	}
	counted := *r
	counted.page = store.Page{Max: rest.MaxPageSize}
	report, err := s.report(ctx, org, &counted)
	if err != nil {
		return nil, err
	}
	page := &Refusals{Data: list, Pages: rest.Pages(total, r.page), Total: total, Since: report.From, Until: report.To, Counts: []ReasonCount{}}
	for i := range report.Data {
		page.Counts = append(page.Counts, ReasonCount{*report.Data[i].Reason, report.Data[i].Hits})
	}
	return page, nil
}

// refusal shows the record of a request id. What no gateway has handed over yet is asked
// of the gateways.
func (s *Service) refusal(ctx context.Context, c *rest.Call) (any, error) {
	id := c.Param("id")
	found, err := rows.RefusalByID(ctx, s.deps.Store, c.Who.Org, id)
	if errors.Is(err, store.ErrNotFound) && s.deps.Remembered != nil {
		var answer []byte
		if answer, err = s.deps.Remembered(ctx, c.Who.Org, id); err == nil {
			found, err = s.remembered(ctx, c.Who.Org, answer)
		}
	}
	if err != nil {
		return nil, rest.Missing(err, unknownRefusal)
	}
	return found, nil
}

const unknownRefusal = "No refused request with this id is known: it was not refused, or more than 100 of its key have been since, or it is older than usage.retention_refusals"

// remembered returns the record in the explanation of a refused request. Gateways remember
// the name of the key alone, which leads to its identity.
func (s *Service) remembered(ctx context.Context, org string, explanation []byte) (found *rows.Refusal, err error) {
	if found, err = recordIn(explanation); err != nil || found.Key != "" {
		return found, err
	}
	found.Key, err = rows.KeyNamed(ctx, s.deps.Store, org, found.KeyName)
	return found, err
}

// recordIn returns the record in an explanation.
func recordIn(explanation []byte) (*rows.Refusal, error) {
	var said struct {
		Refusal struct {
			usage.Refusal
			API struct {
				ID      string `json:"id"`
				Org     string `json:"org_id"`
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"api"`
		} `json:"refusal"`
	}
	if err := json.Unmarshal(explanation, &said); err != nil {
		return nil, fmt.Errorf("reading the record of a gateway: %w", err)
	}
	found, api := &rows.Refusal{Refusal: said.Refusal.Refusal}, said.Refusal.API
	found.API, found.Org, found.APIName, found.Version = api.ID, api.Org, api.Name, api.Version
	return found, nil
}

// ownRefusals lists what a developer may see: nothing of other keys, upstreams, gateways
// and the configuration.
func (s *Service) ownRefusals(ctx context.Context, c *rest.Call) (any, error) {
	identity, err := s.deps.OwnKey(ctx, c)
	if err != nil {
		return nil, err
	}
	r, err := parseRefusals(c, 7*day, s.deps.Now())
	if err != nil {
		return nil, err
	}
	key := s.keyOf(identity)
	r.key = &key
	list, err := s.listRefusals(ctx, c.Who.Org, r)
	if err != nil {
		return nil, err
	}
	own := &OwnRefusals{Data: make([]OwnRefusal, 0, len(list.Data)), Pages: list.Pages, Total: list.Total, Counts: list.Counts}
	for i := range list.Data {
		f := &list.Data[i]
		own.Data = append(own.Data, OwnRefusal{
			ID: f.ID, At: f.At, API: f.API, APIName: f.APIName, Version: f.Version, Stage: f.Stage, Status: f.Status, Reason: f.Reason,
			Message: f.Message, Method: f.Method, Path: f.Path, Limits: f.Limits, Errors: f.Errors, Upstream: f.Upstream != "",
		})
	}
	return own, nil
}
