package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/rights"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

var sample = &definition.API{ID: "sample", OrgID: "org1"}

// exchange is a request of a key; grants are those of an earlier request of it,
// or nil.
func exchange(s *definition.Session, p *definition.PolicySet, grants *pipeline.Grants) *pipeline.Exchange {
	ex := pipeline.For(&wire.Call{Method: []byte("GET"), Started: time.Now()})
	ex.Session, ex.Policies, ex.KeyHash, ex.KeyName = s, p, "0123456789abcdef", "0123456789ab"
	ex.Path = []byte("/things/7")
	if ex.Grants = grants; grants == nil {
		ex.Grants = &pipeline.Grants{}
	}
	return ex
}

func to(apis ...string) map[string]*definition.Access {
	rights := make(map[string]*definition.Access)
	for _, id := range apis {
		rights[id] = &definition.Access{APIID: id}
	}
	return rights
}

func policy(id string, change func(*definition.Policy)) *definition.Policy {
	p := &definition.Policy{ID: id, OrgID: "org1", AccessRights: to("sample")}
	if change != nil {
		change(p)
	}
	return p
}

func TestWhoMayCallAnAPI(t *testing.T) {
	set := definition.NewPolicySet([]*definition.Policy{
		policy("gold", nil),
		policy("elsewhere", func(p *definition.Policy) { p.AccessRights = to("other") }),
		policy("off", func(p *definition.Policy) { p.IsInactive = true }),
		policy("denied", func(p *definition.Policy) { p.State = "deny" }),
		policy("foreign", func(p *definition.Policy) { p.OrgID = "org2" }),
		policy("torn", func(p *definition.Policy) { p.Partitions.PerAPI, p.Partitions.ACL = true, true }),
	})
	carrying := func(ids ...string) *definition.Session {
		return &definition.Session{OrgID: "org1", ApplyPolicies: ids}
	}
	for _, c := range []struct {
		name    string
		session *definition.Session
		masters bool
		want    *pipeline.Rejection
		policy  string
	}{
		{"policy", carrying("gold"), false, nil, "gold"},
		{"policy and another that is missing", carrying("none", "gold"), false, nil, "gold"},
		{"own rights", &definition.Session{AccessRights: to("sample")}, false, nil, ""},
		{"own rights elsewhere", &definition.Session{AccessRights: to("other")}, false, denied, ""},
		{"own rights in another organisation", &definition.Session{OrgID: "org2", AccessRights: to("sample")}, false, denied, ""},
		{"master key of another organisation", &definition.Session{OrgID: "org2"}, true, denied, ""},
		{"policy elsewhere", carrying("elsewhere"), false, denied, ""},
		{"inactive policy", carrying("off"), false, inactive, ""},
		{"policy that denies", carrying("gold", "denied"), false, inactive, ""},
		{"inactive key without policies", &definition.Session{IsInactive: true, AccessRights: to("sample")}, false, inactive, ""},
		{"inactive key with an active policy", &definition.Session{OrgID: "org1", IsInactive: true, ApplyPolicyID: "gold"}, false, nil, "gold"},
		{"policy of another organisation", carrying("foreign"), false, unusable, ""},
		{"only policy missing", carrying("none"), false, unusable, ""},
		{"policy at odds with itself", carrying("torn"), false, unusable, ""},
		{"master key", &definition.Session{}, true, nil, ""},
		{"master key where there are none", &definition.Session{}, false, denied, ""},
	} {
		s := New(Options{MasterKeys: c.masters, Log: quiet()}).Compile(sample)
		var grants pipeline.Grants
		for range 2 {
			ex := exchange(c.session, set, &grants)
			v := s.Handle(ex)
			if ex.Rejection != c.want || (v == pipeline.Next) != (c.want == nil) {
				t.Errorf("%s: verdict %d, rejection %+v", c.name, v, ex.Rejection)
			}
			if ex.Grant == nil || ex.Grant.Policy != c.policy {
				t.Errorf("%s: grant %+v", c.name, ex.Grant)
			}
		}
	}
}

func TestRefusalsSayWhatTheContractSays(t *testing.T) {
	for _, c := range []struct {
		r       *pipeline.Rejection
		message string
		reason  string
		event   event.Name
	}{
		{unusable, "Access to this API has been disallowed", "access_denied", event.AuthFailure},
		{denied, "Access to this API has been disallowed", "access_denied", ""},
		{inactive, "Key is inactive, please renew", "auth_inactive", event.KeyExpired},
		{urlDenied, "Access to this resource has been disallowed", "url_denied", ""},
	} {
		if c.r.Status != 403 || c.r.Message != c.message || c.r.Reason.String() != c.reason || c.r.Event != c.event {
			t.Errorf("%+v, want %+v", c.r, c)
		}
	}
}

func TestKeylessAPIsHaveNoStage(t *testing.T) {
	if New(Options{Log: quiet()}).Compile(&definition.API{UseKeyless: true}) != nil {
		t.Error("a keyless API asks for rights")
	}
}

func TestMethodsAndPathsAreHeldAgainstTheList(t *testing.T) {
	limited := &definition.Session{AccessRights: map[string]*definition.Access{"sample": {AllowedURLs: []definition.AllowedURL{
		{URL: "^/things(/|$)", Methods: []string{"GET", "HEAD"}},
		{URL: "/comments", Methods: []string{"POST"}},
		{URL: "^/nothing$"},
	}}}}
	s := New(Options{Log: quiet()}).Compile(sample)
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{"GET", "/things", true},
		{"HEAD", "/things/7", true},
		{"GET", "/things7", false},
		{"POST", "/things", false},
		{"GET", "/x/things", false},
		{"POST", "/x/comments/1", true},
		{"GET", "/x/comments/1", false},
		{"GET", "/nothing", false},
		{"get", "/things", false},
		{"", "/things", false},
		{"GET", "/", false},
	} {
		ex := exchange(limited, nil, nil)
		ex.Call.Method = []byte(c.method)
		ex.Path = []byte(c.path)
		if got := s.Handle(ex) == pipeline.Next; got != c.want {
			t.Errorf("%s %s: allowed %v, want %v", c.method, c.path, got, c.want)
		}
		if !c.want && ex.Rejection != urlDenied {
			t.Errorf("%s %s: refused with %+v", c.method, c.path, ex.Rejection)
		}
	}
}

func TestAnEmptyListAllowsEveryPath(t *testing.T) {
	ex := exchange(&definition.Session{AccessRights: to("sample")}, nil, nil)
	ex.Call.Method = []byte("BREW")
	if New(Options{Log: quiet()}).Compile(sample).Handle(ex) != pipeline.Next || ex.Grant.URLs != nil {
		t.Errorf("refused: %+v", ex.Rejection)
	}
}

func TestAListThatCannotBeReadAllowsNothingAndIsReportedOnce(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}).Compile(sample)
	for range 5 {
		ex := exchange(&definition.Session{AccessRights: map[string]*definition.Access{"sample": {
			AllowedURLs: []definition.AllowedURL{{URL: ".*", Methods: []string{"GET"}}, {URL: "(", Methods: []string{"GET"}}},
		}}}, nil, nil)
		if s.Handle(ex) != pipeline.Rejected || ex.Rejection != unusable {
			t.Fatalf("rejection %+v", ex.Rejection)
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `url \"(\"`) || !strings.Contains(got, "key=0123456789ab") {
		t.Errorf("logged\n%s", got)
	}
}

func TestTroubleWithPoliciesIsReportedOnceForEachSet(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}).Compile(sample)
	for range 2 {
		set := definition.NewPolicySet([]*definition.Policy{policy("gold", nil)})
		for i := range 10 * maxReports {
			s.Handle(exchange(&definition.Session{OrgID: "org1", ApplyPolicies: []string{"gone"}}, set, nil))
			s.Handle(exchange(&definition.Session{OrgID: "org1", ApplyPolicies: []string{"gold", fmt.Sprintf("missing-%d", i)}}, set, nil))
		}
	}
	if got := strings.Count(log.String(), "\n"); got != 2*maxReports {
		t.Errorf("%d lines, want %d", got, 2*maxReports)
	}
	if got := strings.Count(log.String(), `policy not found: \"gone\"`); got != 2 {
		t.Errorf("%d lines about one missing policy, want one for each set", got)
	}
}

func TestLimitsOfAGrant(t *testing.T) {
	numbers := definition.Limits{Rate: 5, Per: 10, QuotaMax: 100, QuotaRenewalRate: 60}
	rate := counter.Limit{Key: "rate-0123456789abcdef-1700000000", Kind: counter.Rate, Max: 5, Period: 10 * time.Second}
	quota := counter.Limit{Key: "quota-0123456789abcdef", Kind: counter.Quota, Max: 100, Period: time.Minute}
	perAPI := counter.Limit{Key: "quota-sample-0123456789abcdef", Kind: counter.Quota, Max: 7, Period: time.Hour}
	with := func(change func(*definition.Limits)) *definition.Session {
		s := &definition.Session{Limits: numbers, LastUpdated: "1700000000", AccessRights: to("sample")}
		change(&s.Limits)
		return s
	}
	own := with(func(*definition.Limits) {})
	own.AccessRights["sample"].Limit = &definition.AccessLimit{Limits: definition.Limits{QuotaMax: 7, QuotaRenewalRate: 3600}}
	for _, c := range []struct {
		name    string
		session *definition.Session
		api     definition.API
		want    []counter.Limit
		max     int64
	}{
		{"both", with(func(*definition.Limits) {}), definition.API{}, []counter.Limit{rate, quota}, 100},
		{"no rate", with(func(l *definition.Limits) { l.Rate = 0 }), definition.API{}, []counter.Limit{quota}, 100},
		{"no quota", with(func(l *definition.Limits) { l.QuotaMax = 0 }), definition.API{}, []counter.Limit{rate}, 0},
		{"unlimited", with(func(l *definition.Limits) { l.QuotaMax, l.Rate = -1, -1 }), definition.API{}, nil, -1},
		{"quota off", with(func(*definition.Limits) {}), definition.API{DisableQuota: true}, []counter.Limit{rate}, 0},
		{"quota skipped", with(func(*definition.Limits) {}), definition.API{SkipQuota: true}, []counter.Limit{rate}, 0},
		{"rate off", with(func(*definition.Limits) {}), definition.API{DisableRateLimit: true}, []counter.Limit{quota}, 100},
		{"per API", own, definition.API{}, []counter.Limit{rate, perAPI}, 7},
	} {
		c.api.ID = "sample"
		ex := exchange(c.session, nil, nil)
		if New(Options{Log: quiet()}).Compile(&c.api).Handle(ex) != pipeline.Next {
			t.Errorf("%s: refused: %+v", c.name, ex.Rejection)
			continue
		}
		g := ex.Grant
		if fmt.Sprint(g.Limits()) != fmt.Sprint(c.want) || g.QuotaMax() != c.max {
			t.Errorf("%s: %+v, quota %d", c.name, g.Limits(), g.QuotaMax())
		}
		for i, l := range g.Limits() {
			if at := map[counter.Kind]int8{counter.Rate: g.Rate, counter.Quota: g.Quota}[l.Kind]; int(at) != i {
				t.Errorf("%s: limit %d is taken to be at %d", c.name, i, at)
			}
		}
		if has := g.Rate >= 0; has != strings.Contains(fmt.Sprint(c.want), "rate-") {
			t.Errorf("%s: rate at %d", c.name, g.Rate)
		}
	}
}

func TestCountersOfAClusterAreNamedForIt(t *testing.T) {
	ex := exchange(&definition.Session{Limits: definition.Limits{QuotaMax: 1}, AccessRights: to("sample")}, nil, nil)
	New(Options{Naming: counter.Naming{Tagged: true}, Log: quiet()}).Compile(sample).Handle(ex)
	if got := ex.Grant.Limits()[0].Key; got != "quota-{0123456789abcdef}" {
		t.Errorf("counter %q", got)
	}
}

func TestAChangeOfPoliciesAppliesToTheNextRequest(t *testing.T) {
	session := &definition.Session{OrgID: "org1", ApplyPolicies: []string{"gold"}}
	s := New(Options{Log: quiet()}).Compile(sample)
	var grants pipeline.Grants
	for _, quota := range []int64{10, 20, 5} {
		set := definition.NewPolicySet([]*definition.Policy{policy("gold", func(p *definition.Policy) { p.QuotaMax = quota })})
		for range 2 {
			ex := exchange(session, set, &grants)
			s.Handle(ex)
			if ex.Grant.QuotaMax() != quota {
				t.Errorf("quota %d, want %d", ex.Grant.QuotaMax(), quota)
			}
		}
	}
}

func TestRequestsOfTwoConfigurationsDoNotMixTheirGrants(t *testing.T) {
	session := &definition.Session{OrgID: "org1", ApplyPolicies: []string{"gold"}}
	s := New(Options{Log: quiet()}).Compile(sample)
	sets := make([]*definition.PolicySet, 2)
	for i := range sets {
		sets[i] = definition.NewPolicySet([]*definition.Policy{policy("gold", func(p *definition.Policy) { p.QuotaMax = int64(i + 1) })})
	}
	var grants pipeline.Grants
	for i := range 100 {
		ex := exchange(session, sets[i%2], &grants)
		s.Handle(ex)
		if ex.Grant.QuotaMax() != int64(i%2+1) {
			t.Fatalf("request %d: quota %d", i, ex.Grant.QuotaMax())
		}
	}
}

func TestKeysWithTheSameListShareItsExpressions(t *testing.T) {
	a := New(Options{Log: quiet()})
	s := a.Compile(sample)
	list := func(urls ...string) *definition.Session {
		e := &definition.Access{}
		for _, u := range urls {
			e.AllowedURLs = append(e.AllowedURLs, definition.AllowedURL{URL: u, Methods: []string{"GET"}})
		}
		return &definition.Session{AccessRights: map[string]*definition.Access{"sample": e}}
	}
	rulesOf := func(session *definition.Session) pipeline.URLRules {
		ex := exchange(session, nil, nil)
		s.Handle(ex)
		return ex.Grant.URLs
	}
	one, two, other := rulesOf(list("/a", "/b")), rulesOf(list("/a", "/b")), rulesOf(list("/a"))
	if one != two || one == other {
		t.Error("rules are shared wrongly")
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(other)
	one, two, other = nil, nil, nil
	for deadline := time.Now().Add(60 * time.Second); ; {
		runtime.GC()
		a.urls.mu.Lock()
		left := len(a.urls.known)
		a.urls.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d lists are still held", left)
		}
	}
	if again := rulesOf(list("/a", "/b")); !again.Allows([]byte("GET"), []byte("/b")) {
		t.Error("rules made again do not work")
	}
}

func TestACleanupThatComesLateForgetsNoRulesMadeAgain(t *testing.T) {
	a := New(Options{Log: quiet()})
	list := []rights.Item[definition.AllowedURL]{{Value: definition.AllowedURL{URL: "/a"}}}
	made, err := a.urls.find(list)
	if err != nil {
		t.Fatal(err)
	}
	a.urls.forget(digestOf(list))
	if again, err := a.urls.find(list); err != nil || again != made {
		t.Errorf("made anew: %v", err)
	}
}

func TestListsThatReadAlikeAreToldApart(t *testing.T) {
	a := New(Options{Log: quiet()})
	s := a.Compile(sample)
	for _, list := range [][]definition.AllowedURL{
		{{URL: "/a", Methods: []string{"GET", "POST"}}},
		{{URL: "/a", Methods: []string{"GETPOST"}}},
		{{URL: "/a", Methods: []string{"GETP", "OST"}}},
		{{URL: "/a", Methods: []string{"GET"}}, {URL: "POST"}},
		{{URL: "/aGET", Methods: []string{"POST"}}},
	} {
		ex := exchange(&definition.Session{AccessRights: map[string]*definition.Access{"sample": {AllowedURLs: list}}}, nil, nil)
		s.Handle(ex)
		if got := ex.Grant.URLs.(*urlRules).rules; len(got) != len(list) || string(bytes.Join(got[0].methods, []byte(" "))) != strings.Join(list[0].Methods, " ") || got[0].path.String() != list[0].URL {
			t.Errorf("%v: got %v", list, got)
		}
	}
}

func TestHoldingARequestAgainstItsGrantDoesNotAllocate(t *testing.T) {
	set := definition.NewPolicySet([]*definition.Policy{policy("gold", func(p *definition.Policy) { p.QuotaMax = 5 })})
	limited := &definition.Session{AccessRights: map[string]*definition.Access{"sample": {AllowedURLs: []definition.AllowedURL{
		{URL: "^/users/[0-9]+$", Methods: []string{"GET"}}, {URL: "^/things(/|$)", Methods: []string{"GET"}},
	}}}}
	s := New(Options{Log: quiet()}).Compile(sample)
	for name, ex := range map[string]*pipeline.Exchange{
		"policy":  exchange(&definition.Session{OrgID: "org1", ApplyPolicies: []string{"gold"}}, set, nil),
		"list":    exchange(limited, set, nil),
		"refused": exchange(&definition.Session{AccessRights: to("other")}, set, nil),
	} {
		n := testing.AllocsPerRun(1000, func() { s.Handle(ex) })
		if n != 0 && !race.Enabled { // with the race detector on, pools drop what they hold at random
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// With more keys in use than are kept ready, most requests are the first of their
// key: what they allocate is most of a gateway's garbage.
func TestAGrantTakesNoMoreThanItIs(t *testing.T) {
	set := definition.NewPolicySet([]*definition.Policy{policy("gold", func(p *definition.Policy) { p.QuotaMax, p.Rate, p.Per = 5, 1, 1 })})
	ex := exchange(&definition.Session{OrgID: "org1", ApplyPolicies: []string{"gold"}}, set, nil)
	s := New(Options{Log: quiet()}).Compile(sample)
	grants := make([]pipeline.Grants, 1001)
	n := testing.AllocsPerRun(1000, func() {
		ex.Grants, grants = &grants[0], grants[1:]
		s.Handle(ex)
	})
	if n > 3 && !race.Enabled { // the grant, and the names of its rate and quota
		t.Errorf("%v allocations, want 3", n)
	}
}

func BenchmarkAccess(b *testing.B) {
	set := definition.NewPolicySet([]*definition.Policy{policy("gold", func(p *definition.Policy) { p.QuotaMax, p.Rate, p.Per = 5, 1, 1 })})
	keyed := &definition.Session{OrgID: "org1", ApplyPolicies: []string{"gold"}}
	limited := &definition.Session{AccessRights: map[string]*definition.Access{"sample": {AllowedURLs: []definition.AllowedURL{
		{URL: "^/things(/|$)", Methods: []string{"GET"}},
	}}}}
	s := New(Options{Log: quiet()}).Compile(sample)
	for _, c := range []struct {
		name    string
		session *definition.Session
	}{{"policy", keyed}, {"list", limited}} {
		b.Run(c.name, func(b *testing.B) {
			ex := exchange(c.session, set, nil)
			b.ReportAllocs()
			for b.Loop() {
				s.Handle(ex)
			}
		})
	}
	b.Run("first request", func(b *testing.B) {
		ex := exchange(keyed, set, nil)
		b.ReportAllocs()
		for b.Loop() {
			ex.Grants = &pipeline.Grants{}
			s.Handle(ex)
		}
	})
}
