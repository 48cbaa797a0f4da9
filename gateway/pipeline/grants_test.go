package pipeline

import (
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/sluicegate/sluice/internal/definition"
)

func scopeOf(api *definition.API, policies *definition.PolicySet) GrantScope {
	return GrantScope{API: weak.Make(api), Policies: weak.Make(policies)}
}

func TestGrantsAreFoundByAPIAndPolicies(t *testing.T) {
	apis := make([]*definition.API, 5)
	for i := range apis {
		apis[i] = &definition.API{ID: string(rune('a' + i))}
	}
	before, after := definition.NewPolicySet(nil), definition.NewPolicySet(nil)
	var g Grants
	grants := make([]*Grant, len(apis))
	for i, api := range apis {
		if g.Find(scopeOf(api, before)) != nil {
			t.Fatalf("API %d: found before it was kept", i)
		}
		grants[i] = &Grant{}
		g.Keep(scopeOf(api, before), grants[i])
	}
	for i, api := range apis {
		if g.Find(scopeOf(api, before)) != grants[i] {
			t.Errorf("API %d: another grant than was kept", i)
		}
		if g.Find(scopeOf(api, after)) != nil {
			t.Errorf("API %d: a grant of other policies", i)
		}
	}
	renewed := &Grant{}
	g.Keep(scopeOf(apis[1], after), renewed)
	if g.Find(scopeOf(apis[1], after)) != renewed {
		t.Error("the grant of the new policies is lost")
	}
}

func TestAGrantForTheNextFormOfAnAPITakesThePlaceOfItsLast(t *testing.T) {
	var g Grants
	policies := definition.NewPolicySet(nil)
	for _, id := range []string{"one", "other"} {
		for range 3 {
			scope := scopeOf(&definition.API{ID: id}, policies)
			grant := &Grant{}
			g.Keep(scope, grant)
			if g.Find(scope) != grant {
				t.Error("it is not found")
			}
			if id == "one" && (g.first.Load() != grant || g.more.Load() != nil) {
				t.Error("a key with one API has a table")
			}
		}
	}
	if g.more.Load() == nil {
		t.Error("the grant of one API took the place of another's")
	}
}

func TestGrantsDoNotKeepConfigurationsAlive(t *testing.T) {
	var g Grants
	var apis []weak.Pointer[definition.API]
	policies := definition.NewPolicySet(nil)
	for range 3 {
		api := &definition.API{}
		apis = append(apis, weak.Make(api))
		g.Keep(scopeOf(api, policies), &Grant{})
	}
	set := weak.Make(policies)
	runtime.KeepAlive(policies)
	policies = nil
	runtime.GC()
	runtime.GC()
	for i, api := range apis {
		if api.Value() != nil {
			t.Errorf("API %d is still held", i)
		}
	}
	if set.Value() != nil {
		t.Error("the policies are still held")
	}
	runtime.KeepAlive(&g)
}

func TestGrantsOfManyAPIsAtOnce(t *testing.T) {
	var g Grants
	policies := definition.NewPolicySet(nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				scope, want := scopeOf(&definition.API{}, policies), &Grant{}
				g.Keep(scope, want)
				if got := g.Find(scope); got != nil && got != want {
					t.Error("found the grant of another API")
				}
			}
		})
	}
	wg.Wait()
}

func TestFindingAGrantDoesNotAllocate(t *testing.T) {
	var g Grants
	policies := definition.NewPolicySet(nil)
	one, two := scopeOf(&definition.API{ID: "one"}, policies), scopeOf(&definition.API{ID: "two"}, policies)
	g.Keep(one, &Grant{})
	g.Keep(two, &Grant{})
	for name, scope := range map[string]GrantScope{"first": one, "another": two} {
		if n := testing.AllocsPerRun(1000, func() { g.Find(scope) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
