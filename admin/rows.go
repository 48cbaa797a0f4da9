package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/usage"
	"github.com/sluicegate/sluice/internal/credential"
)

// Lists answer view=row with rows of at most a kilobyte, however large what they stand
// for is.

// RowCalls are the calls of a row.
type RowCalls struct {
	// Calls in the last 24 hours and the hour before them that had begun.
	Calls int64 `json:"calls_24h"`
	// Those of calls_24h that were refused, failed, or were answered with a status from 400 on.
	Errors int64 `json:"errors_24h"`
}

// apiRow is an API in a list of rows.
type apiRow struct {
	// Id of the API.
	ID string `json:"api_id"`
	// Name of the API, cut after 128 bytes.
	Name string `json:"name"`
	// Host that the API is served on; empty: every host.
	Domain string `json:"domain"`
	// Path that the API is served below, cut after 160 bytes.
	Path string `json:"listen_path"`
	// graphql: the API has a GraphQL schema; rest: it has none.
	Kind string `json:"kind" enum:"graphql,rest"`
	// How callers authenticate: some of keyless, token, basic, jwt, oauth and mtls.
	Auth []string `json:"auth" nullable:"false"`
	// Whether gateways serve the API.
	Active bool `json:"active"`
	// First four tags of the API.
	Labels []string `json:"labels" nullable:"false"`
	// Version of the object, for If-Match; it grows with each change.
	Version int64 `json:"version"`
	// Time at which the API was created.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last change.
	UpdatedAt time.Time `json:"updated_at"`
	// E-mail address or name of the author of the last change; empty: not known.
	ChangedBy string `json:"changed_by"`
	RowCalls
}

// apiRows is one page of rows of APIs.
type apiRows struct {
	// APIs of the page.
	Rows []apiRow `json:"rows" nullable:"false"`
	rest.RowCounts
}

// policyRow is a policy in a list of rows.
type policyRow struct {
	// Id of the policy.
	ID string `json:"id"`
	// Name of the policy, cut after 128 bytes.
	Name string `json:"name"`
	// Whether the policy is active, a draft, or denies all calls.
	State string `json:"state" enum:"active,draft,deny"`
	// Limits of the policy, as they are written in it.
	Limits policyRowLimits `json:"limits"`
	// Number of APIs that the policy names.
	APIs int `json:"apis"`
	// First four tags of the policy.
	Labels []string `json:"labels" nullable:"false"`
	// Version of the object, for If-Match; it grows with each change.
	Version int64 `json:"version"`
	// Time at which the policy was created.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last change.
	UpdatedAt time.Time `json:"updated_at"`
	// E-mail address or name of the author of the last change; empty: not known.
	ChangedBy string `json:"changed_by"`
}

// policyRowLimits are the limits of a policy, as they are written in it.
type policyRowLimits struct {
	// Calls allowed in per seconds; 0 or less: no limit.
	Rate float64 `json:"rate"`
	// Seconds that rate is of.
	Per float64 `json:"per"`
	// Calls allowed in quota_renewal_rate seconds; 0 or less: no quota.
	QuotaMax int64 `json:"quota_max"`
	// Seconds after which the quota renews; 0: it does not.
	QuotaRenewalRate int64 `json:"quota_renewal_rate"`
	// Levels that a GraphQL operation may have; 0 or less: no limit.
	MaxQueryDepth int `json:"max_query_depth"`
	// measure: refusals of the policy are counted and the calls go on; left out: they are refused.
	Enforcement string `json:"enforcement,omitempty"`
}

// policyRows is one page of rows of policies.
type policyRows struct {
	// Policies of the page.
	Rows []policyRow `json:"rows" nullable:"false"`
	rest.RowCounts
}

// keyRow is a key in a list of rows.
type keyRow struct {
	// Hash of the key, which names it in calls.
	Hash string `json:"key_hash"`
	// Alias of the key, cut after 128 bytes; empty: it has none.
	Alias string `json:"alias"`
	// Whether the key is neither switched off nor expired.
	Active bool `json:"active"`
	// Time at which the key expires; null: never.
	ExpiresAt *time.Time `json:"expires_at"`
	// Number of APIs that the key names itself, without those of its policies.
	APIs int `json:"apis"`
	// Ids of the first three policies of the key.
	Policies []string `json:"policies" nullable:"false"`
	// Number of all policies of the key.
	PolicyCount int `json:"policy_count"`
	// First four tags of the key.
	Labels []string `json:"labels" nullable:"false"`
	// Id of the developer whose key it is; empty: it is no developer's.
	Developer string `json:"developer_id"`
	// E-mail address of that developer; empty: it is no developer's.
	Mail string `json:"developer_email"`
	// Version of the object; it grows with each change.
	Version int64 `json:"version"`
	// Time at which the key was made.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last change.
	UpdatedAt time.Time `json:"updated_at"`
	// E-mail address or name of the author of the last change; empty: not known.
	ChangedBy string `json:"changed_by"`
	RowCalls
}

// keyRows is one page of rows of keys.
type keyRows struct {
	// Keys of the page.
	Rows []keyRow `json:"rows" nullable:"false"`
	rest.RowCounts
}

// apiRowQuery are the query parameters of rows of APIs, beside those of lists.
var apiRowQuery = []string{"view", "kind", "auth", "active", "label"}

// What rows can be filtered by.
var (
	rowKinds = []string{"graphql", "rest"}
	rowAuths = []string{"keyless", "token", "basic", "jwt", "oauth", "mtls"}
)

// answerRows answers with rows unless what a call asks for is faulty.
func (s *Server) answerRows(ctx context.Context, c *rest.Call, faulty error, list rest.Handler) (any, error) {
	if faulty != nil {
		return nil, faulty
	}
	return list(ctx, c)
}

// rowFilter reads the filters of a list.
func rowFilter(c *rest.Call) (*store.RowFilter, error) {
	f := &store.RowFilter{Search: c.Query("q"), Label: c.Query("label"), API: c.Query("api_id"), Policy: c.Query("policy_id")}
	var err error
	if f.Kind, err = rest.OneOf(c, "kind", rowKinds...); err != nil {
		return nil, err
	}
	if f.Auth, err = rest.OneOf(c, "auth", rowAuths...); err != nil {
		return nil, err
	}
	if f.State, err = rest.OneOf(c, "state", "active", "draft", "deny"); err != nil {
		return nil, err
	}
	active, err := rest.OneOf(c, "active", "true", "false")
	if err == nil && active != "" {
		f.Active = new(active == "true")
	}
	return f, err
}

const day = 24 * time.Hour

// listAPIRows answers a list of APIs with rows.
func (s *Server) listAPIRows(ctx context.Context, c *rest.Call) (any, error) {
	f, err := rowFilter(c)
	if err != nil {
		return nil, err
	}
	page, order, err := rest.RowPage(c, "name", "listen_path", "created_at", "updated_at")
	if err != nil {
		return nil, err
	}
	found, total, err := s.deps.Store.APIRows(ctx, c.Who.Org, f, cmp.Or(order, "name"), page)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	calls, err := s.usage.CallsOfAPIs(ctx, c.Who.Org, ids, day)
	if err != nil {
		return nil, err
	}
	list := apiRows{Rows: make([]apiRow, 0, len(found)), RowCounts: rest.RowCountsOf(total, page)}
	for _, r := range found {
		list.Rows = append(list.Rows, apiRow{
			ID: r.ID, Name: rest.Truncate(r.Name, 128), Domain: rest.Truncate(r.Domain, 128), Path: rest.Truncate(r.Path, 160),
			Kind: r.Kind, Auth: r.Auth, Active: r.Active, Labels: labels(r.Tags), Version: r.Version,
			CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ChangedBy: rest.Truncate(r.ChangedBy, 64), RowCalls: rowCallsOf(calls[r.ID]),
		})
	}
	return list, nil
}

// listPolicyRows answers a list of policies with rows.
func (s *Server) listPolicyRows(ctx context.Context, c *rest.Call) (any, error) {
	active, err := rest.OneOf(c, "active", "true", "false")
	if err != nil {
		return nil, err
	}
	f, err := rowFilter(c)
	if err != nil {
		return nil, err
	}
	for _, ids := range c.HTTP.QueryArgs().PeekMulti("policy_ids") {
		f.IDs = append(f.IDs, strings.Split(string(ids), ",")...)
	}
	if active != "" {
		f.State = map[string]string{"true": "active", "false": "deny"}[active]
	}
	page, order, err := rest.RowPage(c, "name", "created_at", "updated_at")
	if err != nil {
		return nil, err
	}
	found, total, err := s.deps.Store.PolicyRows(ctx, c.Who.Org, f, cmp.Or(order, "name"), page)
	if err != nil {
		return nil, err
	}
	list := policyRows{Rows: make([]policyRow, 0, len(found)), RowCounts: rest.RowCountsOf(total, page)}
	for _, r := range found {
		row := policyRow{
			ID: r.ID, Name: rest.Truncate(r.Name, 128), State: r.State, APIs: r.APIs, Labels: labels(r.Tags), Version: r.Version,
			CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ChangedBy: rest.Truncate(r.ChangedBy, 64),
		}
		if err := json.Unmarshal(r.Limits, &row.Limits); err != nil {
			return nil, fmt.Errorf("reading the limits of policy %s: %w", r.ID, err)
		}
		list.Rows = append(list.Rows, row)
	}
	return list, nil
}

// listKeyRows answers a list of keys with rows.
func (s *Server) listKeyRows(ctx context.Context, c *rest.Call) (any, error) {
	f, err := rowFilter(c)
	if err != nil {
		return nil, err
	}
	if err := s.checkKeySearch(c, f.Search); err != nil {
		return nil, err
	}
	if api := c.Param("id"); api != "" {
		f.API = api
	}
	page, order, err := rest.RowPage(c, "name", "created_at")
	if err != nil {
		return nil, err
	}
	found, total, err := s.deps.Store.KeyRows(ctx, c.Who.Org, f, order, page)
	if err != nil {
		return nil, err
	}
	identities := make([]string, len(found))
	for i := range found {
		identities[i] = found[i].Hash
	}
	calls, err := s.usage.CallsOfKeys(ctx, c.Who.Org, identities, day)
	if err != nil {
		return nil, err
	}
	list := keyRows{Rows: make([]keyRow, 0, len(found)), RowCounts: rest.RowCountsOf(total, page)}
	for _, r := range found {
		list.Rows = append(list.Rows, keyRow{
			Hash: s.hashFor(c, r.Hash), Alias: rest.Truncate(r.Alias, 128), Active: r.Active, ExpiresAt: r.ExpiresAt, APIs: r.APIs,
			Policies: r.Policies, PolicyCount: r.PolicyCount, Labels: labels(r.Tags), Developer: r.Developer, Mail: rest.Truncate(r.DeveloperMail, 96),
			Version: r.Version, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ChangedBy: rest.Truncate(r.ChangedBy, 64), RowCalls: rowCallsOf(calls[r.Hash]),
		})
	}
	return list, nil
}

// checkKeySearch refuses a search that would find out keys which are stored in clear.
func (s *Server) checkKeySearch(c *rest.Call, prefix string) error {
	if prefix != "" && c.Who.Role.BelowEditor() && s.deps.KeyOptions.Hasher.Algorithm == credential.None {
		return rest.BadRequest("q: must be left out: keys are stored in clear (keys.hash: none), and only editors may search by their beginning")
	}
	return nil
}

func rowCallsOf(c usage.Calls) RowCalls { return RowCalls{Calls: c.Hits, Errors: c.Errors} }

// labels returns the tags that a row shows, each cut after 32 bytes.
func labels(tags []string) []string {
	shown := make([]string, 0, 4)
	for _, tag := range tags[:min(len(tags), 4)] {
		shown = append(shown, rest.Truncate(tag, 32))
	}
	return shown
}
