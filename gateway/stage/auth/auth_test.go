package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
)

func TestEachKindOfCredentialGetsItsAnswer(t *testing.T) {
	st := newStore()
	hour := time.Now().Add(time.Hour).Unix()
	good := issue(t, st, &definition.Session{Alias: "good", Expires: hour})
	never := issue(t, st, &definition.Session{Alias: "never", Expires: -1})
	off := issue(t, st, &definition.Session{IsInactive: true})
	past := issue(t, st, &definition.Session{Expires: time.Now().Unix() - 1})
	both := issue(t, st, &definition.Session{IsInactive: true, Expires: 1})
	ruled := issue(t, st, &definition.Session{Alias: "ruled", IsInactive: true, ApplyPolicies: []string{"gold"}})
	if err := st.Put(t.Context(), hasher.Hash("org1bob"), &definition.Session{Alias: "bob"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Put(t.Context(), hasher.Hash("org1ann"), &definition.Session{BasicAuth: &definition.BasicAuth{Password: "hash"}}); err != nil {
		t.Fatal(err)
	}
	s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{OrgID: "org1"})
	for _, c := range []struct {
		name, header string
		want         *pipeline.Rejection
		alias        string
	}{
		{"no header", "", missing, ""},
		{"blanks", "   ", missing, ""},
		{"scheme alone", "Bearer ", missing, ""},
		{"too short", "ab", noKey, ""},
		{"too long", strings.Repeat("x", maxToken+1), noKey, ""},
		{"unknown", "nobody-knows-me", unknown, ""},
		{"mistyped", good[:len(good)-1] + "?", unknown, ""},
		{"another scheme", "Basic " + good, unknown, ""},
		{"the name of a user", "ann", unknown, ""},
		{"good", good, nil, "good"},
		{"good with scheme", "Bearer " + good, nil, "good"},
		{"good with scheme in another case", "bEARER \t " + good + " ", nil, "good"},
		{"never expires", never, nil, "never"},
		{"inactive", off, inactive, ""},
		{"expired", past, expired, ""},
		{"inactive and expired", both, inactive, ""},
		{"policies decide whether it is active", ruled, nil, "ruled"},
		{"named by hand, bare", "bob", nil, "bob"},
		{"named by hand, whole", "org1bob", nil, "bob"},
	} {
		before := st.looked()
		for _, again := range []string{"", " again"} { // the second time from memory
			ex := exchange("Authorization", c.header)
			v := s.Handle(ex)
			if ex.Rejection != c.want || (v == pipeline.Next) != (c.want == nil) {
				t.Errorf("%s%s: verdict %d, rejection %+v", c.name, again, v, ex.Rejection)
			}
			if c.alias != "" && (ex.Session == nil || ex.Session.Alias != c.alias || ex.Grants == nil || len(ex.KeyHash) != 64 || ex.KeyName != ex.KeyHash[:12]) {
				t.Errorf("%s%s: session %+v, key %q %q", c.name, again, ex.Session, ex.KeyHash, ex.KeyName)
			}
		}
		if asks := st.looked() > before; asks && (len(c.header) < 3 || len(c.header) > maxToken) {
			t.Errorf("%s: the store was asked", c.name)
		}
	}
}

func TestRefusalsSayWhatTheContractSays(t *testing.T) {
	for _, c := range []struct {
		r       *pipeline.Rejection
		status  int
		message string
		reason  string
		event   event.Name
	}{
		{missing, 401, "Authorization field missing", "auth_missing", ""},
		{unknown, 403, "Access to this API has been disallowed", "auth_unknown", event.AuthFailure},
		{inactive, 403, "Key is inactive, please renew", "auth_inactive", event.KeyExpired},
		{expired, 401, "Key has expired, please renew", "auth_expired", event.KeyExpired},
	} {
		if c.r.Status != c.status || c.r.Message != c.message || c.r.Reason.String() != c.reason || c.r.Event != c.event {
			t.Errorf("%+v, want %+v", c.r, c)
		}
	}
	if unavailable.Status != 503 || unavailable.Reason.String() != "key_store_unavailable" {
		t.Errorf("%+v", unavailable)
	}
}

func TestAStoreThatIsAwayIsNeverToldAsABadKey(t *testing.T) {
	for _, err := range []error{keystore.ErrUnavailable, context.DeadlineExceeded, errors.New("session is not JSON")} {
		st := newStore()
		st.err = err
		s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{})
		for range 3 {
			ex := exchange("Authorization", credential.Generate(hasher.Prefix))
			if s.Handle(ex) != pipeline.Rejected || ex.Rejection != unavailable || ex.RetryAfter != 1 {
				t.Errorf("%v: %+v", err, ex.Rejection)
			}
		}
	}
}

func TestKeylessAPIsHaveNoStage(t *testing.T) {
	if s, err := New(NewSessions(options(newStore())), 3).Compile(&definition.API{UseKeyless: true}); s != nil || err != nil {
		t.Error("a keyless API asks for keys")
	}
}

func TestTheHeaderIsConfigurable(t *testing.T) {
	st := newStore()
	key := issue(t, st, &definition.Session{})
	def := &definition.API{StripAuthData: true, AuthConfigs: map[string]*definition.Auth{"authToken": {HeaderName: "x-api-KEY"}}}
	s := compiled(t, New(NewSessions(options(st)), 3), def)
	ex := exchange("X-Api-Key", key)
	if s.Handle(ex) != pipeline.Next {
		t.Fatalf("refused: %+v", ex.Rejection)
	}
	if !slices.Equal(ex.Outgoing.Drop, []string{"X-Api-Key"}) {
		t.Errorf("stripped %q", ex.Outgoing.Drop)
	}
	ex = exchange("Authorization", key)
	if s.Handle(ex) != pipeline.Rejected || ex.Rejection != missing {
		t.Error("taken from another header")
	}
}

func TestCredentialsAreForwardedUnlessStripped(t *testing.T) {
	st := newStore()
	key := issue(t, st, &definition.Session{})
	for _, strip := range []bool{false, true} {
		s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{StripAuthData: strip})
		ex := exchange("Authorization", key)
		s.Handle(ex)
		if got := slices.Equal(ex.Outgoing.Drop, []string{"Authorization"}); got != strip {
			t.Errorf("strip_auth_data %v: dropped %q", strip, ex.Outgoing.Drop)
		}
	}
}

func TestSchemesAreTakenOff(t *testing.T) {
	for value, want := range map[string]string{
		"": "", " ": "", "k": "k", " k ": "k", "\tk\t": "k",
		"Bearer k": "k", "bearer k": "k", "BEARER   k": "k", "Bearer\tk": "k", " Bearer k ": "k",
		"Bearer": "", "Bearer ": "", "bearerk": "bearerk", "Bearer=k": "Bearer=k", "Bear k": "Bear k",
		"Bearer Bearer k": "Bearer k",
	} {
		if got := string(withoutScheme([]byte(value))); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestAKeyStoredInClearIsNamedByItsHash(t *testing.T) {
	st := newStore()
	o := options(st)
	o.Hasher = &credential.Hasher{Algorithm: credential.None}
	if err := st.Put(t.Context(), "geheimer-schluessel", &definition.Session{}); err != nil {
		t.Fatal(err)
	}
	s := compiled(t, New(NewSessions(o), 3), &definition.API{})
	ex := exchange("Authorization", "geheimer-schluessel")
	if s.Handle(ex) != pipeline.Next {
		t.Fatalf("refused: %+v", ex.Rejection)
	}
	if ex.KeyHash != "geheimer-schluessel" || len(ex.KeyName) != 12 || strings.Contains(ex.KeyHash, ex.KeyName) {
		t.Errorf("key %q is called %q", ex.KeyHash, ex.KeyName)
	}
}

func TestAuthenticationDoesNotAllocate(t *testing.T) {
	st := newStore()
	good := issue(t, st, &definition.Session{})
	past := issue(t, st, &definition.Session{Expires: 1})
	s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{StripAuthData: true})
	for name, value := range map[string]string{
		"good": "Bearer " + good, "missing": "", "malformed": good + "x", "unknown": "nobody-knows-me", "expired": past,
	} {
		ex := exchange("Authorization", value)
		if n := testing.AllocsPerRun(1000, func() { s.Handle(ex) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkAuth(b *testing.B) {
	st := newStore()
	good := issue(b, st, &definition.Session{})
	s := compiled(b, New(NewSessions(options(st)), 3), &definition.API{})
	for _, c := range []struct{ name, value string }{
		{"good", "Bearer " + good}, {"missing", ""}, {"malformed", good + "x"},
	} {
		b.Run(c.name, func(b *testing.B) {
			ex := exchange("Authorization", c.value)
			b.ReportAllocs()
			for b.Loop() {
				s.Handle(ex)
			}
		})
	}
}

// murmur32 of the token below, so that a key with this hash exists.
const legacyToken, legacyHash = "eyJpZCI6ImZvcmdlZCIsImgiOiJtdXJtdXIzMiJ9", "02137b43"

func TestATokenDoesNotChooseTheHashThatFindsIt(t *testing.T) {
	st := newStore()
	if err := st.Put(t.Context(), legacyHash, &definition.Session{Alias: "old"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		legacy []credential.Algorithm
		want   *pipeline.Rejection
	}{
		{"by default", nil, unknown},
		{"where another hash is listed", []credential.Algorithm{credential.Murmur64}, unknown},
		{"where its hash is listed", []credential.Algorithm{credential.Murmur32}, nil},
	} {
		o := options(st)
		o.Hasher = &credential.Hasher{Prefix: hasher.Prefix, Legacy: c.legacy}
		ex := exchange("Authorization", legacyToken)
		compiled(t, New(NewSessions(o), 3), &definition.API{}).Handle(ex)
		if ex.Rejection != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, ex.Rejection, c.want)
		}
		if c.want == nil && (ex.KeyHash != legacyHash || ex.KeyName != credential.Masked(legacyHash)[:12]) {
			t.Errorf("%s: counted as %s, and logs name it %s", c.name, ex.KeyHash, ex.KeyName)
		}
	}
}

func TestAKeyUnderALegacyHashIsReportedAtItsUse(t *testing.T) {
	st := newStore()
	if err := st.Put(t.Context(), "248bfa47", &definition.Session{}); err != nil { // murmur32 of hello
		t.Fatal(err)
	}
	o := options(st)
	var found []string
	o.Hasher = &credential.Hasher{Prefix: hasher.Prefix, Legacy: []credential.Algorithm{credential.Murmur32}}
	o.Legacy = func(identity string, hashes []string) { found = append(append(found, identity), hashes...) }
	s := compiled(t, New(NewSessions(o), 3), &definition.API{OrgID: "org1"})
	for range 2 {
		if ex := exchange("Authorization", "hello"); s.Handle(ex) != pipeline.Next {
			t.Fatalf("%+v", ex.Rejection)
		}
	}
	if want := []string{"248bfa47", hasher.Hash("hello")}; !slices.Equal(found, want) {
		t.Errorf("reported %q, want %q", found, want)
	}
	found = nil
	s.Handle(exchange("Authorization", issue(t, st, &definition.Session{})))
	if found != nil {
		t.Errorf("a key under SHA-256 is reported: %q", found)
	}
}
