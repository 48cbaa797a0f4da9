package definition

import (
	"encoding/json"
	"fmt"
	"strings"
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
		doubts := a.Doubts()
		if (want == "unread") != (len(doubts) == 1) || len(doubts) == 1 && doubts[0].Path != `version_data.versions["v"].expires` {
			t.Errorf("%q: doubts %v", expires, doubts)
		}
	}
	if _, ends := (*Version)(nil).Expiry(); ends || (&API{}).Doubts() != nil {
		t.Error("what is not there ends")
	}
}

func TestAnIgnoredPathThatOpensTheWholeAPIIsDoubted(t *testing.T) {
	for ignored, want := range map[string]bool{"/users": true, "users/": true, "/user": false, "/": false, "/users/x": false, "^/users$": false} {
		a := &API{Proxy: Proxy{ListenPath: "/users/"}, VersionData: &VersionData{Versions: map[string]*Version{"v": {Paths: &PathLists{Ignored: []string{"/a", ignored}}}}}}
		doubts := a.Doubts()
		if (len(doubts) == 1) != want || want && doubts[0].Path != `version_data.versions["v"].paths.ignored[1]` {
			t.Errorf("%s: %v", ignored, doubts)
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
	v := &Version{Paths: &PathLists{Black: []string{"/a"}}, ExtendedPaths: json.RawMessage(`{"black_list": [{"path": "/b"}, {"path": "("}]}`)}
	for extended, want := range map[bool]string{false: "/a", true: "/b"} {
		v.UseExtendedPaths = extended
		rules, err := v.PathRules()
		if len(rules.Black) != 1 || rules.Black[0].Path != want || (err != nil) != extended {
			t.Errorf("extended %v: %+v, %v", extended, rules, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "extended_paths.black_list[1].path: ") {
			t.Error(err)
		}
	}
	for _, v := range []*Version{nil, {}} {
		if rules, err := v.PathRules(); rules.Decides() || err != nil {
			t.Errorf("%+v, %v", rules, err)
		}
	}
}
