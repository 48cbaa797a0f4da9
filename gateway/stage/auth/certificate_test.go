package auth

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// over is an exchange over TLS whose client shows a certificate, or none.
func over(shown *testenv.Identity, token string) *pipeline.Exchange {
	ex := exchange("Authorization", token)
	ex.Call.TLS = true
	if shown != nil {
		ex.Call.Cert = wire.NewCertificate([]*x509.Certificate{shown.Leaf})
	}
	return ex
}

func sumOf(i *testenv.Identity) string {
	return string(wire.NewCertificate([]*x509.Certificate{i.Leaf}).Sum)
}

func TestACertificateStandsForAKey(t *testing.T) {
	st, authority := newStore(), testenv.NewAuthority(t, "a")
	known, stranger := authority.Client("known"), authority.Client("stranger")
	old, young := authority.ClientUntil("old", time.Now().Add(-30*time.Minute)), authority.ClientUntil("young", time.Now().Add(2*time.Hour))
	for _, i := range []*testenv.Identity{known, old, young} {
		if err := st.Put(t.Context(), hasher.Hash("org1"+sumOf(i)), &definition.Session{OrgID: "org1", Alias: i.Leaf.Subject.CommonName}); err != nil {
			t.Fatal(err)
		}
	}
	plain := issue(t, st, &definition.Session{Alias: "plain"})
	bound := issue(t, st, &definition.Session{Alias: "bound", Extra: &definition.Extra{CertificateBindings: []string{"org1" + sumOf(known)}}})
	s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{OrgID: "org1", Auth: &definition.Auth{UseCertificate: true}})
	other := compiled(t, New(NewSessions(options(st)), 3), &definition.API{OrgID: "org2", Auth: &definition.Auth{UseCertificate: true}})
	for _, c := range []struct {
		name  string
		ex    *pipeline.Exchange
		stage pipeline.Stage
		want  *pipeline.Rejection
		alias string
	}{
		{"plain HTTP", exchange("", ""), s, noCertificate, ""},
		{"plain HTTP with a key", exchange("Authorization", plain), s, noCertificate, ""},
		{"no certificate", over(nil, ""), s, noCertificate, ""},
		{"no certificate, and a key", over(nil, plain), s, noCertificate, ""},
		{"known", over(known, ""), s, nil, "known"},
		{"known, with a token of nobody's", over(known, "something for the upstream"), s, nil, "known"},
		{"known, with a token that is too long", over(known, strings.Repeat("x", maxToken+1)), s, nil, "known"},
		{"known, with another certificate's name for a token", over(known, "org1"+sumOf(stranger)), s, nil, "known"},
		{"known, with a key that is bound to it", over(known, bound), s, nil, "bound"},
		{"known, with a key that is bound to none", over(known, plain), s, otherCertificate, ""},
		{"unknown", over(stranger, ""), s, unknownCertificate, ""},
		{"unknown, with a key that is bound to another", over(stranger, bound), s, otherCertificate, ""},
		{"unknown, with the known one's name for a token", over(stranger, "org1"+sumOf(known)), s, unknownCertificate, ""},
		{"unknown, with the known one's bare name", over(stranger, sumOf(known)), s, unknownCertificate, ""},
		{"of another organisation", over(known, ""), other, unknownCertificate, ""},
		{"expired", over(old, ""), s, expiredCertificate, ""},
		{"not valid yet", over(young, ""), s, earlyCertificate, ""},
	} {
		for _, again := range []string{"", " again"} {
			c.ex.Rejection, c.ex.Session = nil, nil
			v := c.stage.Handle(c.ex)
			if c.ex.Rejection != c.want || (v == pipeline.Next) != (c.want == nil) {
				t.Errorf("%s%s: verdict %d, rejection %+v", c.name, again, v, c.ex.Rejection)
			}
			if c.alias != "" && (c.ex.Session == nil || c.ex.Session.Alias != c.alias) {
				t.Errorf("%s%s: session %+v", c.name, again, c.ex.Session)
			}
		}
		if closes := c.ex.Answer.Close; closes != (c.want == noCertificate && c.ex.Call.TLS) {
			t.Errorf("%s: the connection ends: %t", c.name, closes)
		}
	}
}

func TestABoundKeyWorksWithItsCertificateAlone(t *testing.T) {
	st, authority := newStore(), testenv.NewAuthority(t, "a")
	mine, second, theirs := authority.Client("mine"), authority.Client("second"), authority.Client("theirs")
	old := authority.ClientUntil("old", time.Now().Add(-30*time.Minute))
	several := issue(t, st, &definition.Session{OrgID: "org1", Extra: &definition.Extra{CertificateBindings: []string{sumOf(mine), "org1" + sumOf(second), sumOf(old)}}})
	one := issue(t, st, &definition.Session{Extra: &definition.Extra{Certificate: "org1" + sumOf(mine)}})
	gone := issue(t, st, &definition.Session{IsInactive: true, Extra: &definition.Extra{Certificate: sumOf(mine)}})
	free := issue(t, st, &definition.Session{Extra: &definition.Extra{HMACString: "x"}})
	s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{OrgID: "org1"})
	for _, c := range []struct {
		name  string
		shown *testenv.Identity
		token string
		want  *pipeline.Rejection
	}{
		{"none shown", nil, several, noCertificate},
		{"the first", mine, several, nil},
		{"the second", second, several, nil},
		{"another one", theirs, several, otherCertificate},
		{"one that has expired", old, several, expiredCertificate},
		{"the certificate of the key", mine, one, nil},
		{"another than the certificate of the key", second, one, otherCertificate},
		{"an inactive key with its certificate", mine, gone, inactive},
		{"an inactive key without", theirs, gone, otherCertificate},
		{"a key that is not bound", nil, free, nil},
	} {
		ex := over(c.shown, c.token)
		if s.Handle(ex); ex.Rejection != c.want {
			t.Errorf("%s: %+v", c.name, ex.Rejection)
		}
	}
	ex := exchange("Authorization", several)
	if s.Handle(ex); ex.Rejection != noCertificate {
		t.Errorf("over plain HTTP: %+v", ex.Rejection)
	}
}

func TestRefusalsOfCertificatesSayWhatTheContractSays(t *testing.T) {
	for want, r := range map[string]*pipeline.Rejection{
		"401 Client certificate required": noCertificate, "403 Certificate has expired": expiredCertificate,
		"401 Access to this API has been disallowed": unknownCertificate,
	} {
		if got := text(r.Status) + " " + r.Message; got != want || r.Event != "" {
			t.Errorf("%s, event %q, want %s", got, r.Event, want)
		}
	}
}

func TestAnExplanationOfABoundKeyNamesItsCertificate(t *testing.T) {
	st, mine := newStore(), testenv.NewAuthority(t, "a").Client("mine")
	key := issue(t, st, &definition.Session{Extra: &definition.Extra{CertificateBindings: []string{sumOf(mine)}}})
	for _, use := range []bool{false, true} {
		s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{Auth: &definition.Auth{UseCertificate: use}})
		ex := over(nil, key)
		f := pipeline.Finding{Verdict: s.Handle(ex)}
		s.(pipeline.Explainer).Explain(ex, &f)
		if !strings.Contains(f.Fix, "connect over TLS with a certificate") {
			t.Errorf("use_certificate %t: %+v", use, f)
		}
	}
}

func TestACertificateThatIsKnownCostsNothing(t *testing.T) {
	st, authority := newStore(), testenv.NewAuthority(t, "a")
	mine, stranger := authority.Client("mine"), authority.Client("stranger")
	if err := st.Put(t.Context(), hasher.Hash("org1"+sumOf(mine)), &definition.Session{OrgID: "org1", Extra: &definition.Extra{Certificate: sumOf(mine)}}); err != nil {
		t.Fatal(err)
	}
	s := compiled(t, New(NewSessions(options(st)), 3), &definition.API{OrgID: "org1", Auth: &definition.Auth{UseCertificate: true}})
	for name, ex := range map[string]*pipeline.Exchange{"known": over(mine, ""), "unknown": over(stranger, ""), "none": over(nil, "")} {
		s.Handle(ex)
		if n := testing.AllocsPerRun(100, func() { s.Handle(ex) }); n != 0 && !race.Enabled {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
