package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// MostCounted is how far the objects of a list are counted: counting all of very many
// would take longer than reading a page of them.
const MostCounted = 10_000

// A RowFilter filters a list of rows. Empty members do not filter.
type RowFilter struct {
	Search string   // part of a name, path, host or id in any case; of keys the beginning of alias or hash
	Label  string   // one of tags
	Kind   string   // of APIs: graphql or rest
	Auth   string   // of APIs: one of those that APIRow.Auth may have
	Active *bool    // of APIs and keys
	State  string   // of policies
	API    string   // of policies and keys: that may call this API
	Policy string   // of keys: that carry this policy
	IDs    []string // of APIs or policies: these
}

// An APIRow is what a list shows of an API.
type APIRow struct {
	ID, Name, Domain, Path string
	Kind                   string   // graphql or rest
	Auth                   []string // keyless, token, basic, jwt, oauth, mtls
	Active                 bool
	Tags                   []string
	Version                int64
	CreatedAt, UpdatedAt   time.Time
	ChangedBy              string // "": not known
}

// A PolicyRow is what a list shows of a policy.
type PolicyRow struct {
	ID, Name, State      string
	Limits               []byte // JSON
	APIs                 int    // that it names
	Tags                 []string
	Version              int64
	CreatedAt, UpdatedAt time.Time
	ChangedBy            string
}

// A KeyRow is what a list shows of a key.
type KeyRow struct {
	Hash, Alias              string
	Active                   bool
	ExpiresAt                *time.Time // nil: never
	APIs                     int        // that it names itself
	Policies                 []string   // the first ones
	PolicyCount              int
	Tags                     []string
	Version                  int64
	CreatedAt, UpdatedAt     time.Time
	Developer, DeveloperMail string // "": of no developer
	ChangedBy                string
}

// fewPolicies is how many policies of a key a row names.
const fewPolicies = 3

// apiSorts, policySorts and keySorts are the orders of rows, each one that an index has or
// that few rows are sorted by.
var (
	apiSorts = map[string]string{
		"name": "name, id", "-name": "name DESC, id DESC", "listen_path": "path, id", "-listen_path": "path DESC, id DESC",
		"created_at": "created_at, id", "-created_at": "created_at DESC, id DESC", "updated_at": "updated_at, id", "-updated_at": "updated_at DESC, id DESC",
	}
	policySorts = map[string]string{
		"name": "name, id", "-name": "name DESC, id DESC",
		"created_at": "created_at, id", "-created_at": "created_at DESC, id DESC", "updated_at": "updated_at, id", "-updated_at": "updated_at DESC, id DESC",
	}
	keySorts = map[string]string{
		"": "key_hash", "name": "alias, key_hash", "-name": "alias DESC, key_hash DESC",
		"created_at": "created_at, key_hash", "-created_at": "created_at DESC, key_hash DESC",
	}
)

// changedBy finds who changed an object of the configuration last.
const changedBy = `coalesce((
    SELECT r.author FROM config_revisions r
    WHERE r.revision = (SELECT max(h.revision) FROM config_history h WHERE h.org_id = @org AND h.kind = @kind_of_object AND h.id = o.id)
), '')`

// APIRows returns a page of an organisation's APIs, and how many there are on all pages,
// up to one more than MostCounted. Sort is name, listen_path, created_at or updated_at,
// with "-" in front for descending order.
func (s *Store) APIRows(ctx context.Context, org string, f *RowFilter, sort string, page Page) ([]APIRow, int64, error) {
	where := []string{"org_id = @org"}
	if f.Search != "" {
		where = append(where, "(position(@search IN lower(name)) > 0 OR position(@search IN lower(path)) > 0 OR position(@search IN lower(id)) > 0 OR position(@search IN domain) > 0)")
	}
	where = given(where, f.Kind != "", "kind = @kind")
	where = given(where, len(f.IDs) > 0, "id = ANY (@ids::text[])")
	where = given(where, f.Auth != "", "@auth = ANY (auth)")
	where = given(where, f.Active != nil, "active = @active")
	where = given(where, f.Label != "", "@label = ANY (tags)")
	list := rowList{
		table: "apis", where: where, order: apiSorts[sort],
		show: `SELECT o.id, o.name, o.domain, o.path, o.kind, o.auth, o.active, o.tags, o.version, o.created_at, o.updated_at, ` + changedBy + `
FROM (%s) f JOIN apis o ON o.id = f.id`,
	}
	return rowsOf[APIRow](ctx, s, &list, f.args(org, kindAPI, page))
}

// PolicyRows is APIRows for policies, which have no path.
func (s *Store) PolicyRows(ctx context.Context, org string, f *RowFilter, sort string, page Page) ([]PolicyRow, int64, error) {
	where := []string{"org_id = @org"}
	where = given(where, f.Search != "", "(position(@search IN lower(name)) > 0 OR position(@search IN lower(id)) > 0)")
	where = given(where, f.State != "", "state = @state")
	where = given(where, f.API != "", "apis @> ARRAY[@api::text]")
	where = given(where, len(f.IDs) > 0, "id = ANY (@ids::text[])")
	where = given(where, f.Label != "", "@label = ANY (tags)")
	list := rowList{
		table: "policies", where: where, order: policySorts[sort],
		show: `SELECT o.id, o.name, o.state, o.limits, cardinality(o.apis), o.tags, o.version, o.created_at, o.updated_at, ` + changedBy + `
FROM (%s) f JOIN policies o ON o.id = f.id`,
	}
	return rowsOf[PolicyRow](ctx, s, &list, f.args(org, kindPolicy, page))
}

// KeyRows is APIRows for keys. Sort is name or created_at, or "" for the order of hashes.
// Keys of organisations, and those that followed another, are left out.
func (s *Store) KeyRows(ctx context.Context, org string, f *RowFilter, sort string, page Page) ([]KeyRow, int64, error) {
	args := f.args(org, "key", page)
	where := []string{"org_id = @org", "successor_of = ''", "NOT starts_with(key_hash, 'org:')"}
	if f.Search != "" {
		args["prefix"] = LikePrefix(strings.ToLower(f.Search))
		where = append(where, "(lower(alias) LIKE @prefix OR key_hash LIKE @prefix)")
	}
	if f.API != "" {
		naming, err := s.PoliciesNaming(ctx, org, f.API)
		if err != nil {
			return nil, 0, err
		}
		args["naming"] = naming
		where = append(where, "(apis @> ARRAY[@api::text] OR policies && @naming::text[])")
	}
	where = given(where, f.Policy != "", "policies @> ARRAY[@policy::text]")
	where = given(where, f.Label != "", "legible(body) -> 'tags' IS NOT NULL AND json_texts(legible(body) -> 'tags') @> ARRAY[@label::text]")
	if f.Active != nil {
		where = given(where, *f.Active, "active AND (expires_at IS NULL OR expires_at > now())")
		where = given(where, !*f.Active, "(NOT active OR active AND expires_at IS NOT NULL AND expires_at <= now())")
	}
	list := rowList{
		table: "keys", where: where, order: keySorts[sort],
		show: `SELECT o.key_hash, o.alias, o.active AND (o.expires_at IS NULL OR o.expires_at > now()), o.expires_at, cardinality(o.apis), o.policies[1:@few], cardinality(o.policies),
    json_texts(legible(o.body) -> 'tags'), o.version, o.created_at, o.updated_at, coalesce(d.id, ''), coalesce(d.email, ''), coalesce(c.actor, '')
FROM (%s) f JOIN keys o ON o.key_hash = f.key_hash
LEFT JOIN developer_keys k ON k.key_hash = o.key_hash
LEFT JOIN developers d ON d.id = k.developer_id
LEFT JOIN LATERAL (
    SELECT a.actor FROM audit_log a
    WHERE a.org_id = @org AND a.object_kind = @kind_of_object AND a.object_id = o.key_hash ORDER BY a.id DESC LIMIT 1
) c ON true`,
	}
	return rowsOf[KeyRow](ctx, s, &list, args)
}

// given appends a condition that a filter needs.
func given(where []string, wanted bool, condition string) []string {
	if wanted {
		return append(where, condition)
	}
	return where
}

// args returns the arguments of all conditions.
func (f *RowFilter) args(org, kind string, page Page) pgx.NamedArgs {
	return pgx.NamedArgs{
		"org": org, "kind_of_object": kind, "search": strings.ToLower(f.Search), "kind": f.Kind, "auth": f.Auth, "active": f.Active,
		"label": f.Label, "state": f.State, "api": f.API, "policy": f.Policy, "few": fewPolicies, "ids": f.IDs,
		"skip": page.offset(), "max": page.bounded(), "most": MostCounted + 1,
	}
}

// A rowList is the statement of a list: it holds no text of a caller.
type rowList struct {
	table, show, order string
	again              string // order of what show joins; "": that of order
	where              []string
}

// found returns the part of a statement that selects the objects of the list.
func (l *rowList) found(columns string) string {
	return "SELECT " + columns + " FROM " + l.table + " WHERE " + strings.Join(l.where, " AND ")
}

// rowsOf reads a page of a list and counts the list.
func rowsOf[T any](ctx context.Context, s *Store, l *rowList, args pgx.NamedArgs) (page []T, total int64, err error) {
	counting := "SELECT count(*) FROM (" + l.found("1") + " LIMIT @most) n"
	if err := s.pool.QueryRow(ctx, counting, args).Scan(&total); err != nil {
		return nil, 0, translate(fmt.Errorf("counting %s: %w", l.table, err))
	}
	id := "id"
	if l.table == "keys" {
		id = "key_hash"
	}
	// The page is found by narrow columns and an index, and joined afterwards: the rest
	// is read of its own rows only.
	first := l.found(id) + " ORDER BY " + l.order + " LIMIT @max OFFSET @skip"
	order := l.again
	if order == "" {
		order = "o." + strings.ReplaceAll(l.order, ", ", ", o.")
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf(l.show, first)+"\nORDER BY "+order, args)
	if err != nil {
		return nil, 0, translate(fmt.Errorf("listing %s: %w", l.table, err))
	}
	page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, 0, translate(fmt.Errorf("listing %s: %w", l.table, err))
	}
	return page, total, nil
}
