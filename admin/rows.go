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
	Calls  int64 `json:"calls_24h" doc:"in the last 24 hours and the begun hour before them"`
	Errors int64 `json:"errors_24h" doc:"of these, refused, failed, or answered with a status from 400 on"`
}

// apiRow is an API in a list of rows.
type apiRow struct {
	ID        string    `json:"api_id"`
	Name      string    `json:"name" doc:"cut after 128 bytes"`
	Domain    string    `json:"domain" doc:"empty: every host"`
	Path      string    `json:"listen_path" doc:"cut after 160 bytes"`
	Kind      string    `json:"kind" enum:"graphql,rest"`
	Auth      []string  `json:"auth" nullable:"false" doc:"some of keyless, token, basic, jwt, oauth and mtls"`
	Active    bool      `json:"active"`
	Labels    []string  `json:"labels" nullable:"false" doc:"the first four tags"`
	Version   int64     `json:"version" doc:"for If-Match"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	ChangedBy string    `json:"changed_by" doc:"who changed it last; empty: not known"`
	RowCalls
}

// apiRows is one page of rows of APIs.
type apiRows struct {
	Rows []apiRow `json:"rows" nullable:"false"`
	rest.RowCounts
}

// policyRow is a policy in a list of rows.
type policyRow struct {
	ID        string          `json:"id"`
	Name      string          `json:"name" doc:"cut after 128 bytes"`
	State     string          `json:"state" enum:"active,draft,deny"`
	Limits    policyRowLimits `json:"limits"`
	APIs      int             `json:"apis" doc:"how many it names"`
	Labels    []string        `json:"labels" nullable:"false" doc:"the first four tags"`
	Version   int64           `json:"version" doc:"for If-Match"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	ChangedBy string          `json:"changed_by" doc:"who changed it last; empty: not known"`
}

// policyRowLimits are the limits of a policy, as they are written in it.
type policyRowLimits struct {
	Rate             float64 `json:"rate"`
	Per              float64 `json:"per"`
	QuotaMax         int64   `json:"quota_max"`
	QuotaRenewalRate int64   `json:"quota_renewal_rate"`
	MaxQueryDepth    int     `json:"max_query_depth"`
	Enforcement      string  `json:"enforcement,omitempty" doc:"measure: refusals are counted only"`
}

// policyRows is one page of rows of policies.
type policyRows struct {
	Rows []policyRow `json:"rows" nullable:"false"`
	rest.RowCounts
}

// keyRow is a key in a list of rows.
type keyRow struct {
	Hash        string     `json:"key_hash"`
	Alias       string     `json:"alias" doc:"cut after 128 bytes"`
	Active      bool       `json:"active" doc:"neither inactive nor expired"`
	ExpiresAt   *time.Time `json:"expires_at" doc:"null: never"`
	APIs        int        `json:"apis" doc:"how many it names itself"`
	Policies    []string   `json:"policies" nullable:"false" doc:"the first three"`
	PolicyCount int        `json:"policy_count"`
	Labels      []string   `json:"labels" nullable:"false" doc:"the first four tags"`
	Developer   string     `json:"developer_id" doc:"empty: of no developer"`
	Mail        string     `json:"developer_email"`
	Version     int64      `json:"version"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	ChangedBy   string     `json:"changed_by" doc:"who changed it last; empty: not known"`
	RowCalls
}

// keyRows is one page of rows of keys.
type keyRows struct {
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
