package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

func TestANameIsOfTheOrganisationThatComesFirst(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	a := testenv.NewAuthority(t, "a")
	add := func(who string, i *testenv.Identity, key bool) *admintest.Answer {
		t.Helper()
		text := []string{i.CertPEM}
		if key {
			text = append(text, i.KeyPEM)
		}
		return b.Call("POST", "/api/certs", who, uploadOf(t, text...))
	}
	first := add(b.editor, a.Server("www.one.example", "one.example"), true).Want(201).Text("ID")
	for _, names := range [][]string{{"www.one.example"}, {"new.example", "one.example"}, {"*.one.example"}} {
		refused := add(b.other, a.Server(names...), true).Want(409).Says("which a certificate of another organisation already serves")
		if text := string(refused.Body); !strings.Contains(text, names[len(names)-1]) || strings.Contains(text, first) || strings.Contains(text, "second") {
			t.Errorf("%v: %s", names, text)
		}
	}
	add(b.editor, a.Server("www.one.example"), true).Want(201) // its next one
	theirs := a.Server("www.one.example")
	add(b.other, theirs, false).Want(201) // to know a client or an upstream by
	add(b.other, theirs, true).Want(409)
	add(b.other, a.Client("www.one.example"), true).Want(201)
	add(b.other, a.Server("mail.one.example"), true).Want(201)

	// Those that an older release has added are looked at then.
	b.Exec("update certificates set claims = null")
	add(b.other, theirs, true).Want(409).Says("www.one.example")
	add(b.editor, a.Server("*.one.example"), true).Want(409).Says("*.one.example")

	for _, id := range idsOf(t, b, b.editor) {
		b.Call("DELETE", "/api/certs/"+id, b.editor, "").Want(200)
	}
	add(b.other, theirs, true).Want(200)
	add(b.editor, a.Server("www.one.example"), true).Want(409)
}

// idsOf returns the ids of an organisation's certificates.
func idsOf(t *testing.T, b *bench, who string) (ids []string) {
	t.Helper()
	var list struct {
		Certificates []struct{ ID string } `json:"certificates"`
	}
	if err := json.Unmarshal(b.Call("GET", "/api/certs", who, "").Want(200).Body, &list); err != nil {
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
				got, err := b.Try("POST", "/api/certs", who, body)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				counts[got.Status]++
			})
		}
		all.Wait()
		if counts[201] != 1 || counts[409] != 1 {
			t.Errorf("round %d: %v", round, counts)
		}
	}
}

func TestAnOrganisationHasOnlySoManyCertificates(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	one := testenv.NewAuthority(t, "a").Client("one")
	again := uploadOf(t, one.CertPEM)
	const fill = "insert into certificates (org_id, sum, pem, sealed_key, claims) select 'second', lpad(n::text, 64, '0'), repeat('x', $1), '', '{}' from generate_series(1, $2) n"
	b.Exec(fill, 1, 5000)
	b.Call("POST", "/api/certs", b.other, again).Want(409).Says("at most 5000 certificates")
	b.Call("POST", "/api/certs", b.editor, again).Want(201) // others are not concerned
	b.Exec("delete from certificates where org_id = 'second' and sum = lpad('1', 64, '0')")
	b.Call("POST", "/api/certs", b.other, again).Want(201)
	b.Call("POST", "/api/certs", b.other, again).Want(200) // it is there
	b.Exec("delete from certificates where org_id = 'second'")
	b.Exec(fill, 1<<20, 32)
	b.Call("POST", "/api/certs", b.other, again).Want(409).Says("at most 32 MiB of certificates")
}
