package auth

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func verifier() *basic.Verifier {
	return basic.New(basic.Options{Size: 100, TTL: time.Minute, PerUser: 100, PerAddress: 100, AtOnce: 2})
}

// enrol stores a user of an organisation.
func enrol(t testing.TB, st *store, org, name, password string, more func(*definition.Session)) {
	t.Helper()
	stored, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	s := &definition.Session{OrgID: org, Alias: name, BasicAuth: &definition.BasicAuth{Password: string(stored), HashType: "bcrypt"}}
	if more != nil {
		more(s)
	}
	if err := st.Put(t.Context(), hasher.Hash(org+name), s); err != nil {
		t.Fatal(err)
	}
}

func shows(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func usersOnly(name string) *definition.API {
	return &definition.API{Name: name, OrgID: "org1", UseBasicAuth: true}
}

func TestUsersGetTheirAnswers(t *testing.T) {
	st := newStore()
	enrol(t, st, "org1", "bob", "secret", nil)
	enrol(t, st, "org2", "ann", "secret", nil)
	enrol(t, st, "org1", "off", "secret", func(s *definition.Session) { s.IsInactive = true })
	enrol(t, st, "org1", "past", "secret", func(s *definition.Session) { s.Expires = 1 })
	if err := st.Put(t.Context(), hasher.Hash("org1key"), &definition.Session{}); err != nil {
		t.Fatal(err)
	}
	s := compiled(t, New(NewSessions(options(st)), 3).WithPasswords(verifier()), usersOnly(`a "b" \c`)).(*stage)
	m := s.modes[0].(*passwordMode)
	for _, c := range []struct {
		name, value string
		want        *pipeline.Rejection
	}{
		{"none", "", m.missing},
		{"blanks", "  ", m.missing},
		{"one word", "Basic", notWords},
		{"too long", shows("bob", strings.Repeat("x", maxToken)), notWords},
		{"not base64", "Basic ?", notBase64},
		{"no colon", "Basic Ym9i", notPair},
		{"nobody", shows("nobody", "x"), m.wrong},
		{"no name", shows("", "secret"), m.wrong},
		{"wrong", shows("bob", "x"), m.wrong},
		{"of another organisation", shows("ann", "secret"), m.wrong},
		{"with that organisation's name", shows("org2ann", "secret"), m.wrong},
		{"behind the organisation", shows("org1bob", "secret"), m.wrong},
		{"a key", shows("key", ""), m.wrong},
		{"right", shows("bob", "secret"), nil},
		{"inactive", shows("off", "secret"), inactive},
		{"expired", shows("past", "secret"), expired},
		{"inactive, with a wrong password", shows("off", "x"), m.wrong},
	} {
		for range 2 {
			ex := exchange("Authorization", c.value)
			v := s.Handle(ex)
			if ex.Rejection != c.want || (v == pipeline.Next) != (c.want == nil) {
				t.Errorf("%s: verdict %d, rejection %+v", c.name, v, ex.Rejection)
			}
			if c.want == nil && (ex.Session.Alias != "bob" || string(ex.Token) != "org1bob" || ex.KeyHash != hasher.Hash("org1bob")) {
				t.Errorf("%s: %+v, token %q", c.name, ex.Session, ex.Token)
			}
			if c.want == m.wrong && ex.Session != nil {
				t.Errorf("%s: refused, and the session is told", c.name)
			}
		}
	}
	for _, r := range []*pipeline.Rejection{m.missing, m.wrong} {
		if r.Status != 401 || r.Challenge != `Basic realm="a \"b\" \\c"` {
			t.Errorf("%+v", r)
		}
	}
	if m.wrong.Event != event.AuthFailure || m.wrong.Message != "User not authorised" || m.missing.Message != missing.Message {
		t.Errorf("%+v, %+v", m.wrong, m.missing)
	}
}

func TestPasswordsAreThrottledAndTheStoreMayBeAway(t *testing.T) {
	st := newStore()
	enrol(t, st, "org1", "bob", "secret", nil)
	v := basic.New(basic.Options{Size: 10, TTL: time.Minute, PerUser: 1, AtOnce: 1})
	s := compiled(t, New(NewSessions(options(st)), 3).WithPasswords(v), usersOnly("a"))
	ask := func(password string, dry bool) *pipeline.Exchange {
		ex := exchange("Authorization", shows("bob", password))
		ex.Client = netip.MustParseAddr("192.0.2.1")
		if dry {
			ex.DryRun = &pipeline.DryRun{}
		}
		s.Handle(ex)
		return ex
	}
	for range 3 {
		if ex := ask("wrong", true); ex.Rejection == throttled || ex.Rejection == nil {
			t.Errorf("only thought of: %+v", ex.Rejection)
		}
	}
	ask("wrong", false)
	for _, dry := range []bool{false, true} {
		if ex := ask("secret", dry); ex.Rejection != throttled || ex.RetryAfter < 1 || ex.RetryAfter > 60 {
			t.Errorf("after a guess: %+v, %d", ex.Rejection, ex.RetryAfter)
		}
	}
	if got := v.Stats(); got.Hashes != 1 {
		t.Errorf("%+v", got)
	}
	st.set(func() { st.err = keystore.ErrUnavailable })
	ex := exchange("Authorization", shows("ann", "secret"))
	if s.Handle(ex); ex.Rejection != unavailable || ex.RetryAfter != 1 {
		t.Errorf("without the store: %+v", ex.Rejection)
	}
}

func TestAllModesMustPassAndTheBaseCounts(t *testing.T) {
	st := newStore()
	key := issue(t, st, &definition.Session{Alias: "key"})
	enrol(t, st, "org1", "bob", "secret", nil)
	a := New(NewSessions(options(st)), 3).WithPasswords(verifier())
	def := &definition.API{
		OrgID: "org1", UseBasicAuth: true, UseStandardAuth: true, StripAuthData: true,
		AuthConfigs: map[string]*definition.Auth{"authToken": {HeaderName: "X-Key"}},
	}
	for base, want := range map[string]string{"": "key", "auth_token": "key", "basic_auth_user": "bob"} {
		def.BaseIdentity = base
		s := compiled(t, a, def)
		ex := asked("", "Authorization: "+shows("bob", "secret"), "X-Key: "+key)
		if s.Handle(ex) != pipeline.Next || ex.Session.Alias != want || len(ex.Outgoing.Drop) != 2 {
			t.Errorf("%q: %+v %+v, dropped %q", base, ex.Rejection, ex.Session, ex.Outgoing.Drop)
		}
		for name, lines := range map[string][]string{
			"only a user": {"Authorization: " + shows("bob", "secret")}, "only a key": {"X-Key: " + key},
			"a wrong key": {"Authorization: " + shows("bob", "secret"), "X-Key: nobodys"}, "a wrong password": {"Authorization: " + shows("bob", "x"), "X-Key: " + key},
		} {
			if ex := asked("", lines...); s.Handle(ex) != pipeline.Rejected {
				t.Errorf("%q: %s passes", base, name)
			}
		}
	}
	if _, err := New(NewSessions(options(st)), 3).Compile(def); err == nil {
		t.Error("passwords are asked for and nothing checks them")
	}
}

func TestExplanationsTellNoSecretAndNoUser(t *testing.T) {
	st := newStore()
	enrol(t, st, "org1", "bob", "secret", nil)
	s := compiled(t, New(NewSessions(options(st)), 3).WithPasswords(verifier()), usersOnly("a")).(*stage)
	var told []string
	for _, value := range []string{shows("bob", "hidden-wrong"), shows("nobody", "hidden-wrong")} {
		ex := exchange("Authorization", value)
		ex.DryRun = &pipeline.DryRun{}
		f := &pipeline.Finding{Verdict: s.Handle(ex)}
		s.Explain(ex, f)
		var text strings.Builder
		text.WriteString(f.Said + f.Fix)
		for _, fact := range f.Facts {
			text.WriteString(fact.Rule + fact.Value + fact.Seen)
		}
		if f.Fix == "" || strings.Contains(text.String(), "hidden") {
			t.Errorf("%+v", f)
		}
		told = append(told, text.String())
	}
	if told[0] != told[1] {
		t.Errorf("a user is told from nobody: %q, %q", told[0], told[1])
	}
}

func TestAWarmUserDoesNotAllocate(t *testing.T) {
	st := newStore()
	enrol(t, st, "org1", "bob", "secret", nil)
	s := compiled(t, New(NewSessions(options(st)), 3).WithPasswords(verifier()), usersOnly("a"))
	call := exchange("Authorization", shows("bob", "secret")).Call
	run := func() {
		ex := pipeline.For(call)
		if s.Handle(ex) != pipeline.Next {
			t.Fatal(ex.Rejection)
		}
		ex.Release()
	}
	run()
	if n := testing.AllocsPerRun(1000, run); n != 0 && !race.Enabled { // with the race detector on, pools drop what they hold at random
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPassword(b *testing.B) {
	st := newStore()
	enrol(b, st, "org1", "bob", "secret", nil)
	s := compiled(b, New(NewSessions(options(st)), 3).WithPasswords(verifier()), usersOnly("a"))
	ex := exchange("Authorization", shows("bob", "secret"))
	s.Handle(ex)
	b.ReportAllocs()
	for b.Loop() {
		s.Handle(ex)
	}
}
