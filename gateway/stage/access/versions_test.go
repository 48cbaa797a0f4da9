package access

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// versioned is an API with versions whose names are out of order.
var versioned = &definition.API{ID: "sample", OrgID: "org1", VersionData: &definition.VersionData{
	Versions: map[string]*definition.Version{"b": {}, "c": {}, "a": {}},
}}

func TestKeysAreHeldToTheVersionsThatTheyList(t *testing.T) {
	lists := func(versions ...string) *definition.Session {
		rights := to("sample")
		rights["sample"].Versions = versions
		return &definition.Session{AccessRights: rights}
	}
	two := func(id string, versions ...string) *definition.Policy {
		return policy(id, func(p *definition.Policy) { p.AccessRights["sample"].Versions = versions })
	}
	set := definition.NewPolicySet([]*definition.Policy{two("one", "b"), two("other", "c", "b")})
	for _, c := range []struct {
		name    string
		api     *definition.API
		session *definition.Session
		want    string // the versions that are open
	}{
		{"listed", versioned, lists("c", "a"), "ac"},
		{"none that exists", versioned, lists("Default"), ""},
		{"none", versioned, lists(), ""},
		{"policies together", versioned, &definition.Session{OrgID: "org1", ApplyPolicies: []string{"one", "other"}}, "bc"},
		{"master key", versioned, &definition.Session{}, "abc"},
		{"API without versions", sample, lists("x"), "abc"},
	} {
		s := New(Options{MasterKeys: true, Log: quiet()}).Compile(c.api)
		var got strings.Builder
		for place, name := range []string{"a", "b", "c"} {
			ex := exchange(c.session, set, nil)
			ex.Version = &pipeline.Version{Name: name, Place: place}
			switch {
			case s.Handle(ex) == pipeline.Next:
				got.WriteString(name)
			case ex.Rejection != versionDenied || ex.Rejection.Status != 403 || ex.Rejection.Message != noAccess:
				t.Errorf("%s: %+v", c.name, ex.Rejection)
			}
		}
		if got.String() != c.want {
			t.Errorf("%s: may use %q, want %q", c.name, got.String(), c.want)
		}
	}
}

func TestKeysWithTheSameVersionsShareThem(t *testing.T) {
	a := New(Options{Log: quiet()})
	s := a.Compile(versioned)
	versionsOf := func(names ...string) *pipeline.VersionSet {
		rights := to("sample")
		rights["sample"].Versions = names
		ex := exchange(&definition.Session{AccessRights: rights}, nil, nil)
		ex.Version = &pipeline.Version{}
		s.Handle(ex)
		return ex.Grant.Versions
	}
	one, two, other := versionsOf("a", "b"), versionsOf("b", "x", "a"), versionsOf("c")
	if one != two || one == other {
		t.Error("versions are shared wrongly")
	}
	runtime.KeepAlive(other)
	one, two, other = nil, nil, nil
	for deadline := time.Now().Add(60 * time.Second); ; {
		runtime.GC()
		a.versions.mu.Lock()
		left := len(a.versions.known)
		a.versions.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d sets are still held", left)
		}
	}
}

func TestASetHoldsManyVersions(t *testing.T) {
	s := pipeline.NewVersionSet([]int{0, 63, 64, 999})
	for at := range 1100 {
		if want := at == 0 || at == 63 || at == 64 || at == 999; s.Has(at) != want {
			t.Errorf("version %d: %v", at, s.Has(at))
		}
	}
}
