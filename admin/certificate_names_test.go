package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestANameIsOfTheOrganisationThatComesFirst(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	a := testenv.NewAuthority(t, "a")
	add := func(who string, i *testenv.Identity, key bool) *answer {
		t.Helper()
		text := []string{i.CertPEM}
		if key {
			text = append(text, i.KeyPEM)
		}
		return b.call("POST", "/api/certs", who, uploadOf(t, text...))
	}
	first := add(b.editor, a.Server("www.one.example", "one.example"), true).want(200).text("ID")
	for _, names := range [][]string{{"www.one.example"}, {"new.example", "one.example"}, {"*.one.example"}} {
		refused := add(b.other, a.Server(names...), true).want(409).says("which a certificate of another organisation is shown for")
		if text := string(refused.body); !strings.Contains(text, names[len(names)-1]) || strings.Contains(text, first) || strings.Contains(text, "second") {
			t.Errorf("%v: %s", names, text)
		}
	}
	add(b.editor, a.Server("www.one.example"), true).want(200) // its next one
	theirs := a.Server("www.one.example")
	add(b.other, theirs, false).want(200) // to know a client or an upstream by
	add(b.other, theirs, true).want(409)
	add(b.other, a.Client("www.one.example"), true).want(200)
	add(b.other, a.Server("mail.one.example"), true).want(200)

	// Those that an older release has added are looked at then.
	sqlExec(t, b.dsn, "update certificates set claims = null")
	add(b.other, theirs, true).want(409).says("www.one.example")
	add(b.editor, a.Server("*.one.example"), true).want(409).says("*.one.example")

	for _, id := range idsOf(t, b, b.editor) {
		b.call("DELETE", "/api/certs/"+id, b.editor, "").want(200)
	}
	add(b.other, theirs, true).want(200)
	add(b.editor, a.Server("www.one.example"), true).want(409)
}

// idsOf returns the ids of an organisation's certificates.
func idsOf(t *testing.T, b *bench, who string) (ids []string) {
	t.Helper()
	var list struct {
		Certificates []struct{ ID string } `json:"certificates"`
	}
	if err := json.Unmarshal(b.call("GET", "/api/certs", who, "").want(200).body, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Certificates {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestOfTwoWhoWantANameAtOnceOneHasIt(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	a := testenv.NewAuthority(t, "a")
	for round := range 10 {
		name := fmt.Sprintf("r%d.example", round)
		var mu sync.Mutex
		var all sync.WaitGroup
		counts := map[int]int{}
		for _, who := range []string{b.editor, b.other} {
			i := a.Server(name)
			body := uploadOf(t, i.CertPEM, i.KeyPEM)
			all.Go(func() {
				got, err := b.try("POST", "/api/certs", who, body)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				counts[got.status]++
			})
		}
		all.Wait()
		if counts[200] != 1 || counts[409] != 1 {
			t.Errorf("round %d: %v", round, counts)
		}
	}
}

func TestAnOrganisationHasOnlySoManyCertificates(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	one := testenv.NewAuthority(t, "a").Client("one")
	again := uploadOf(t, one.CertPEM)
	const fill = "insert into certificates (org_id, sum, pem, sealed_key, claims) select 'second', lpad(n::text, 64, '0'), repeat('x', $1), '', '{}' from generate_series(1, $2) n"
	sqlExec(t, b.dsn, fill, 1, 5000)
	b.call("POST", "/api/certs", b.other, again).want(409).says("at most 5000 certificates")
	b.call("POST", "/api/certs", b.editor, again).want(200) // others are not concerned
	sqlExec(t, b.dsn, "delete from certificates where org_id = 'second' and sum = lpad('1', 64, '0')")
	b.call("POST", "/api/certs", b.other, again).want(200)
	b.call("POST", "/api/certs", b.other, again).want(200) // it is there
	sqlExec(t, b.dsn, "delete from certificates where org_id = 'second'")
	sqlExec(t, b.dsn, fill, 1<<20, 32)
	b.call("POST", "/api/certs", b.other, again).want(409).says("at most 32 MiB of certificates")
}
