package rights

import (
	"fmt"
	"testing"
)

// numbers writes the limits on an operation, each with where it came from.
func numbers(a *Access) string {
	one := func(n any, from Origin) string { return fmt.Sprint(n, short(from)) }
	return fmt.Sprint(one(a.Depth.Value, a.Depth.From), " ", one(a.Aliases.Value, a.Aliases.From), " ", one(a.RootFields.Value, a.RootFields.From), " ",
		one(a.Directives.Value, a.Directives.From), " ", one(a.Tokens.Value, a.Tokens.From), " ", one(a.Cost.Value, a.Cost.From))
}

func TestLimitsOnOperationsAreMergedLikeTheDepth(t *testing.T) {
	all := func(n int) string {
		return fmt.Sprintf(`"max_query_depth": %d, "max_query_aliases": %d, "max_query_root_fields": %d, "max_query_directives": %d, "max_query_tokens": %d, "max_query_cost": %d`, n, n, n, n, n, n)
	}
	each := func(s string) string { return fmt.Sprintf("%s %s %s %s %s %s", s, s, s, s, s, s) }
	const both = `{"apply_policies": ["a", "b"]}`
	for _, c := range []struct {
		name, session string
		policies      []string
		want          string
	}{
		{"none", `{"access_rights": {"x": {}}}`, nil, each("0<default")},
		{"those of the key", `{` + all(5) + `, "access_rights": {"x": {}}}`, nil, each("5<key")},
		{"those of the key's entry", `{` + all(5) + `, "access_rights": {"x": {"limit": {` + all(9) + `}}}}`, nil, each("9<entry")},
		{
			"each number of an entry for itself", `{` + all(5) + `, "access_rights": {"x": {"limit": {"max_query_aliases": 1, "max_query_cost": -1}}}}`, nil,
			"5<key 1<entry 5<key 5<key 5<key -1<entry",
		},
		{"those of a policy", `{` + all(5) + `, "apply_policies": ["a"]}`, []string{`{"id": "a", ` + all(2) + `, "access_rights": {"x": {}}}`}, each("2<a")},
		{"a policy without the partition", `{` + all(5) + `, "apply_policies": ["a"]}`, []string{`{"id": "a", "partitions": {"acl": true}, ` + all(2) + `, "access_rights": {"x": {}}}`}, each("5<key")},
		{
			"the larger of two policies", both,
			[]string{`{"id": "a", ` + all(2) + `, "access_rights": {"x": {}}}`, `{"id": "b", ` + all(3) + `, "access_rights": {"x": {}}}`},
			each("3<b"),
		},
		{
			"unlimited above all", both,
			[]string{`{"id": "a", ` + all(-1) + `, "access_rights": {"x": {}}}`, `{"id": "b", ` + all(3) + `, "access_rights": {"x": {"limit": {` + all(1000) + `}}}}`},
			each("-1<a"),
		},
		{
			"each number from the policy that is freest in it", both,
			[]string{`{"id": "a", "max_query_aliases": 9, "max_query_tokens": 1, "access_rights": {"x": {}}}`, `{"id": "b", "max_query_aliases": 1, "max_query_tokens": 9, "access_rights": {"x": {}}}`},
			"0<default 9<a 0<default 0<default 9<b 0<default",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := numbers(access(t, effective(t, c.session, c.policies...), "x")); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestOneEntryIsEnoughForTrustedDocumentsOnly(t *testing.T) {
	for _, c := range []struct {
		name, session string
		policies      []string
		want          string
	}{
		{"none", `{"access_rights": {"x": {}}}`, nil, "false<default"},
		{"the key's entry", `{"access_rights": {"x": {"trusted_documents_only": true}}}`, nil, "true<entry"},
		{"a master key", `{}`, nil, "false<default"},
		{
			"one of two policies", `{"apply_policies": ["a", "b"]}`,
			[]string{`{"id": "a", "access_rights": {"x": {}}}`, `{"id": "b", "access_rights": {"x": {"trusted_documents_only": true}}}`},
			"true<b.entry",
		},
	} {
		got := access(t, effective(t, c.session, c.policies...), "x").TrustedDocumentsOnly
		if said := fmt.Sprint(got.Value, short(got.From)); said != c.want {
			t.Errorf("%s: %s, want %s", c.name, said, c.want)
		}
	}
}
