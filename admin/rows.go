package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/usage"
	"github.com/sluicegate/sluice/internal/credential"
)

// Lists answer view=row with rows of at most a kilobyte, however large what they stand
// for is.

// RowCounts is what every list of rows says beside them.
type RowCounts struct {
	Total  int64 `json:"total" doc:"on all pages, at most 10000"`
	Capped bool  `json:"total_capped" doc:"there are more than total"`
	Pages  int64 `json:"pages" doc:"of total; later ones can be asked for as well"`
}

// rowCountsOf returns the counts of a list.
func rowCountsOf(total int64, page store.Page) RowCounts {
	most := min(total, store.MostCounted)
	return RowCounts{Total: most, Capped: total > most, Pages: rest.Pages(most, page)}
}

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
	RowCounts
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
	RowCounts
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
	RowCounts
}

// apiRowQuery are the query parameters of rows of APIs, beside those of lists.
var apiRowQuery = []string{"view", "kind", "auth", "active", "label"}

// What rows can be filtered by.
var (
	rowKinds = []string{"graphql", "rest"}
	rowAuths = []string{"keyless", "token", "basic", "jwt", "oauth", "mtls"}
)

// wantsRows reports whether a call asks a list for rows. Parameters that filter rows alone
// are refused otherwise, not ignored.
func wantsRows(c *rest.Call, only ...string) (bool, error) {
	switch view := c.Query("view"); view {
	case "row":
		return true, nil
	case "":
	default:
		return false, rest.BadRequest(fmt.Sprintf("view must be row, or be left out, not %.40q", view))
	}
	for _, name := range only {
		if c.Query(name) != "" {
			return false, rest.BadRequest(name + " needs view=row")
		}
	}
	return false, nil
}

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
	if f.Kind, err = oneOf(c, "kind", rowKinds...); err != nil {
		return nil, err
	}
	if f.Auth, err = oneOf(c, "auth", rowAuths...); err != nil {
		return nil, err
	}
	if f.State, err = oneOf(c, "state", "active", "draft", "deny"); err != nil {
		return nil, err
	}
	active, err := oneOf(c, "active", "true", "false")
	if err == nil && active != "" {
		f.Active = new(active == "true")
	}
	return f, err
}

// oneOf returns a query parameter that is one of some texts, or "" if it is left out.
func oneOf(c *rest.Call, name string, texts ...string) (string, error) {
	text := c.Query(name)
	if text == "" || slices.Contains(texts, text) {
		return text, nil
	}
	return "", rest.BadRequest(fmt.Sprintf("%s must be one of %v, not %.40q", name, texts, text))
}

// rowOrder returns the order of a list of rows that a call asks for.
func rowOrder(c *rest.Call, names ...string) (string, error) {
	all := slices.Clone(names)
	for _, name := range names {
		all = append(all, "-"+name)
	}
	return oneOf(c, "sort", all...)
}

// rowPage reads the page and the order of a list of rows.
func rowPage(c *rest.Call, names ...string) (page store.Page, order string, err error) {
	if page, err = c.Page(false); err == nil {
		order, err = rowOrder(c, names...)
	}
	return page, order, err
}

const day = 24 * time.Hour

// listAPIRows answers a list of APIs with rows.
func (s *Server) listAPIRows(ctx context.Context, c *rest.Call) (any, error) {
	f, err := rowFilter(c)
	if err != nil {
		return nil, err
	}
	page, order, err := rowPage(c, "name", "listen_path", "created_at", "updated_at")
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
	list := apiRows{Rows: make([]apiRow, 0, len(found)), RowCounts: rowCountsOf(total, page)}
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
	active, err := oneOf(c, "active", "true", "false")
	if err != nil {
		return nil, err
	}
	f, err := rowFilter(c)
	if err != nil {
		return nil, err
	}
	if active != "" {
		f.State = map[string]string{"true": "active", "false": "deny"}[active]
	}
	page, order, err := rowPage(c, "name", "created_at", "updated_at")
	if err != nil {
		return nil, err
	}
	found, total, err := s.deps.Store.PolicyRows(ctx, c.Who.Org, f, cmp.Or(order, "name"), page)
	if err != nil {
		return nil, err
	}
	list := policyRows{Rows: make([]policyRow, 0, len(found)), RowCounts: rowCountsOf(total, page)}
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
	page, order, err := rowPage(c, "name", "created_at")
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
	list := keyRows{Rows: make([]keyRow, 0, len(found)), RowCounts: rowCountsOf(total, page)}
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
