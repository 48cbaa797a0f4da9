package definition

import (
	"fmt"
	"testing"
	"time"
)

func TestWhenVersionsEnd(t *testing.T) {
	for expires, want := range map[string]string{
		"": "never", "-1": "never", "2030-12-31 23:59": "2030-12-31T23:59:00Z",
		"next year": "unread", "2030-12-31": "unread", "2030-12-31T23:59": "unread", "2030-13-01 00:00": "unread", "0": "unread",
	} {
		got := "never"
		if at, ends := (&Version{Expires: expires}).Expiry(); ends {
			if got = at.Format(time.RFC3339); at.IsZero() {
				got = "unread"
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", expires, got, want)
		}
		a := &API{VersionData: &VersionData{Versions: map[string]*Version{"v": {Expires: expires}, "w": nil}}}
		warnings := a.Warnings()
		if (want == "unread") != (len(warnings) == 1) || len(warnings) == 1 && warnings[0].Path != `version_data.versions["v"].expires` {
			t.Errorf("%q: warnings %v", expires, warnings)
		}
	}
	if _, ends := (*Version)(nil).Expiry(); ends || (&API{}).Warnings() != nil {
		t.Error("what is not there ends")
	}
}

func TestAnIgnoredPathThatOpensTheWholeAPIRaisesAWarning(t *testing.T) {
	for ignored, want := range map[string]bool{"/users": true, "users/": true, "/user": false, "/": false, "/users/x": false, "^/users$": false} {
		a := &API{Proxy: Proxy{ListenPath: "/users/"}, VersionData: &VersionData{Versions: map[string]*Version{"v": {Paths: &PathLists{Ignored: []string{"/a", ignored}}}}}}
		warnings := a.Warnings()
		if (len(warnings) == 1) != want || want && warnings[0].Path != `version_data.versions["v"].paths.ignored[1]` {
			t.Errorf("%s: %v", ignored, warnings)
		}
	}
}

func TestABlackListedPathThatIsIgnoredRaisesAWarning(t *testing.T) {
	entry := func(path, method string, ignoreCase bool) PathEntry {
		return PathEntry{PathMatch: PathMatch{Path: path, Method: method, IgnoreCase: ignoreCase}}
	}
	for _, c := range []struct {
		ignored, black PathEntry
		want           bool
	}{
		{entry("/open", "", false), entry("/open", "", false), true},
		{entry("/open", "", false), entry("/open/secret", "", false), true},
		{entry("open/", "", false), entry("/open/{id}", "GET", false), true},
		{entry("/", "", false), entry("/secret", "", false), true},
		{entry("/open", "GET", false), entry("/open", "GET", false), true},
		{entry("/Open", "", true), entry("/open", "", true), true},
		{entry("/open", "", false), entry("/opened", "", false), false},
		{entry("/open/secret", "", false), entry("/open", "", false), false},
		{entry("/open", "GET", false), entry("/open", "", false), false},
		{entry("/open", "GET", false), entry("/open", "POST", false), false},
		{entry("/Open", "", false), entry("/open", "", false), false},
		{entry("/open", "", false), entry("/open", "", true), false},
		{entry("^/open", "", false), entry("/open", "", false), false},
		{entry("/open", "", false), entry("/open/.*", "", false), false},
	} {
		v := &Version{UseExtendedPaths: true, ExtendedPaths: &ExtendedPaths{Ignored: []PathEntry{c.ignored}, BlackList: []PathEntry{c.black}}}
		a := &API{Proxy: Proxy{ListenPath: "/a/"}, VersionData: &VersionData{Versions: map[string]*Version{"v": v}}}
		warnings := a.Warnings()
		if (len(warnings) == 1) != c.want || c.want && warnings[0].Path != `version_data.versions["v"].extended_paths.black_list[0]` {
			t.Errorf("%+v before %+v: %v", c.ignored.PathMatch, c.black.PathMatch, warnings)
		}
	}
}

func TestWhichVersionsThereAreToChooseBetween(t *testing.T) {
	two := map[string]*Version{"b": {}, "a": {}}
	for _, c := range []struct {
		data      *VersionData
		names     string
		ambiguous bool
	}{
		{nil, "[]", false},
		{&VersionData{}, "[]", false},
		{&VersionData{Versions: two}, "[a b]", false},
		{&VersionData{NotVersioned: true, Versions: two}, "[]", true},
		{&VersionData{NotVersioned: true, Versions: map[string]*Version{"a": {}}}, "[]", false},
		{&VersionData{NotVersioned: true, Versions: map[string]*Version{"a": {}, "Default": {}}}, "[]", false},
	} {
		a := &API{VersionData: c.data}
		if got := fmt.Sprint(a.VersionNames()); got != c.names || a.Ambiguous() != c.ambiguous {
			t.Errorf("%+v: %s, ambiguous %v", c.data, got, a.Ambiguous())
		}
	}
}

func TestOnlyOneKindOfPathListsIsInUse(t *testing.T) {
	v := &Version{Paths: &PathLists{Black: []string{"/a"}}, ExtendedPaths: &ExtendedPaths{BlackList: []PathEntry{{PathMatch: PathMatch{Path: "/b"}}, {PathMatch: PathMatch{Path: "("}}}}}
	for extended, want := range map[bool]string{false: "/a", true: "/b"} {
		v.UseExtendedPaths = extended
		if rules := v.PathRules(); len(rules.Black) != 1 || rules.Black[0].Path != want {
			t.Errorf("extended %v: %+v", extended, rules)
		}
		var p Problems
		p.checkVersion("", v)
		if extended != (len(p) > 0) || extended && p[0].Path != "extended_paths.black_list[1].path" {
			t.Errorf("extended %v: %v", extended, p)
		}
	}
	for _, v := range []*Version{nil, {}} {
		if rules := v.PathRules(); rules.Decides() {
			t.Errorf("%+v", rules)
		}
	}
}
