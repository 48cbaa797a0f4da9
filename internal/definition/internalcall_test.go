package definition

import (
	"strings"
	"testing"
)

func TestTargetsThatAreAPIsAreChecked(t *testing.T) {
	for target, want := range map[string]string{
		"svc://orders":                            "",
		"svc://orders/":                           "",
		"svc://My-API_2.x/a/b?c=d":                "",
		"svc://self/other":                        "",
		"svc://orders?x=1":                        "",
		"svc://":                                  "there is none",
		"svc:///path":                             "there is none",
		"svc://orders:80/":                        "by its id",
		"svc://user@orders/":                      "by its id",
		"svc://$1/":                               "by its id",
		"svc://orders/a#b":                        "fragment",
		"svc://orders/%zz":                        "not well-formed",
		"svc://orders/a/../b":                     "segment ..",
		"svc://orders/%2e%2e/b":                   "segment ..",
		"svc://orders/?a=b c":                     "percent-encoded",
		"svc://orders/x?method=POST":              "parameter method",
		"svc://orders/x?check_limits=1":           "parameter check_limits",
		"svc://orders/x?a=b&loop_limit=":          "parameter loop_limit",
		"svc://" + strings.Repeat("a", 300) + "/": "too long",
	} {
		got := CheckInternal(target)
		if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

func TestNamesAreComparedWithoutCaseAndSigns(t *testing.T) {
	for name, want := range map[string]string{"My API (v2)": "my-api--v2-", "orders": "orders", "Ümlaut": "-mlaut", "": ""} {
		if got := NameKey(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestVersionsThatAreAPIsAreChecked(t *testing.T) {
	for _, c := range []struct {
		versions VersionAPIs
		path     string
	}{
		{VersionAPIs{Name: "v1", Default: "v1", Others: map[string]string{"v2": "b"}}, ""},
		{VersionAPIs{Default: "self", Others: map[string]string{"v2": "b"}}, ""},
		{VersionAPIs{Others: map[string]string{"v2": "b"}}, ""},
		{VersionAPIs{Name: "v1", Default: "v3", Others: map[string]string{"v2": "b"}}, "default"},
		{VersionAPIs{Name: "v1", Others: map[string]string{"v1": "b"}}, `versions["v1"]`},
		{VersionAPIs{Others: map[string]string{"self": "b"}}, `versions["self"]`},
		{VersionAPIs{Others: map[string]string{"": "b"}}, `versions[""]`},
		{VersionAPIs{Others: map[string]string{"v2": ""}}, `versions["v2"]`},
		{VersionAPIs{Others: map[string]string{"v2": "http://b"}}, `versions["v2"]`},
	} {
		var paths []string
		for _, fault := range c.versions.check() {
			paths = append(paths, fault.Path)
		}
		if got := strings.Join(paths, " "); got != c.path {
			t.Errorf("%+v: %q, want %q", c.versions, got, c.path)
		}
	}
}

func FuzzCheckInternal(f *testing.F) {
	f.Add("svc://orders/a?b=c")
	f.Add("svc://self")
	f.Fuzz(func(t *testing.T, target string) {
		if CheckInternal(InternalScheme+target) != "" {
			return
		}
		name, rest := SplitInternal(InternalScheme + target)
		if name == "" || strings.ContainsAny(name, "/?#@:$%") || name+rest != target {
			t.Errorf("%q is %q and %q", target, name, rest)
		}
	})
}
