package admin

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

const (
	acmePath  = "/api/gateway/acme/"
	acmeIssue = "0123456789abcdef.certificate.a.example.com"
)

func acmeBody(value string, seconds int) string {
	return fmt.Sprintf(`{"value":%q,"expires_in":%d}`, base64.StdEncoding.EncodeToString([]byte(value)), seconds)
}

// Gateways alone read and write entries, which the database has sealed.
func TestACMEEntriesAreForGateways(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	const account = acmePath + "0123456789abcdef.account"
	b.Call("GET", account, gatewayToken, "").Want(404)
	b.Call("PUT", account, gatewayToken, acmeBody("first private", 0)).Want(200)
	b.Call("PUT", account, gatewayToken, acmeBody("second private", 0)).Want(200)
	b.Call("GET", account, gatewayToken, "").Want(200).Says(base64.StdEncoding.EncodeToString([]byte("second private")))
	for _, who := range []string{b.admin, b.editor, b.viewer} {
		b.Call("GET", account, who, "").Want(403)
		b.Call("PUT", account, who, acmeBody("x", 0)).Want(403)
		b.Call("DELETE", account, who, "").Want(403)
		b.Call("POST", account+"/lease", who, `{"holder":"h","seconds":1}`).Want(403)
		b.Call("PUT", account+"/lease", who, `{"holder":"h","seconds":1}`).Want(403)
	}
	b.Exec(`do $$ begin
		if (select count(*) filter (where position('private'::bytea in sealed_value) = 0) from acme_entries) <> 1 then raise 'not sealed'; end if;
	end $$`)

	// A value is sealed for its own entry.
	b.Exec(`insert into acme_entries (name, sealed_value) select '0123456789abcdef.http.token', sealed_value from acme_entries`)
	b.Call("GET", acmePath+"0123456789abcdef.http.token", gatewayToken, "").Want(500)

	b.Exec(`update acme_entries set expires_at = now()`)
	b.Call("GET", account, gatewayToken, "").Want(404)
	b.Call("PUT", account, gatewayToken, acmeBody("third", 60)).Want(200)
	b.Call("GET", acmePath+"0123456789abcdef.http.token", gatewayToken, "").Want(404)
	b.Call("DELETE", account, gatewayToken, "").Want(200)
	b.Call("DELETE", account, gatewayToken, "").Want(200)
	b.Call("GET", account, gatewayToken, "").Want(404)
}

func TestACMEEntriesAreChecked(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	for _, name := range []string{"x", "0123456789abcdef.key.a", "0123456789ABCDEF.account", "0123456789abcdef.http.a%2Fb", "0123456789abcdef.http." + strings.Repeat("a", 254)} {
		b.Call("PUT", acmePath+name, gatewayToken, acmeBody("x", 0)).Want(400).Says("name: want 16 hexadecimal digits")
	}
	for body, problem := range map[string]string{
		acmeBody("", 0):     "value: has 0 bytes; want 1 to ",
		acmeBody("x", -1):   "expires_in: want seconds",
		`{"value":"not"}`:   "illegal base64",
		`{"values":"eA=="}`: "values",
	} {
		b.Call("PUT", acmePath+acmeIssue, gatewayToken, body).Want(400).Says(problem)
	}
	for body, problem := range map[string]string{
		`{"holder":"","seconds":1}`:                "holder: want 1 to 128 bytes",
		`{"holder":"h","seconds":-1}`:              "seconds: want 0 to 604800",
		`{"holder":"h","seconds":604801}`:          "seconds: want 0 to 604800",
		`{"holder":"h","seconds":1,"failures":-1}`: "failures: want 0 or more",
		`{"holder":"h","seconds":1,"error":"` + strings.Repeat("e", maxACMEError+1) + `"}`: "error: want at most 1000 bytes",
	} {
		b.Call("POST", acmePath+acmeIssue+"/lease", gatewayToken, body).Want(400).Says(problem)
		b.Call("PUT", acmePath+acmeIssue+"/lease", gatewayToken, body).Want(400).Says(problem)
	}
	b.Exec(`insert into acme_entries (name, sealed_value) select 'n' || i, '' from generate_series(1, 2000) i`)
	b.Call("PUT", acmePath+acmeIssue, gatewayToken, acmeBody("x", 0)).Want(409).Says("too many")
	b.Exec(`insert into acme_leases (name, holder, until) select 'n' || i, '', now() from generate_series(1, 2000) i`)
	b.Call("POST", acmePath+acmeIssue+"/lease", gatewayToken, `{"holder":"h","seconds":1}`).Want(200).Says(`"granted":false`)
}

// One attempt has the lease, until it ends or its time has passed. A failure is counted, and
// listed until an attempt succeeds.
func TestACMELeases(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	const lease = acmePath + acmeIssue + "/lease"
	take := func(holder, answer string) {
		t.Helper()
		b.Call("POST", lease, gatewayToken, fmt.Sprintf(`{"holder":%q,"seconds":600}`, holder)).Want(200).Says(answer)
	}
	take("one", `{"granted":true,"failures":0}`)
	take("two", `{"granted":false,"failures":0}`)
	b.Call("PUT", lease, gatewayToken, `{"holder":"two","seconds":0}`).Want(404)
	b.Call("PUT", lease, gatewayToken, `{"holder":"one","seconds":600,"failures":3,"error":"no route"}`).Want(200)
	b.Call("GET", "/api/acme", b.viewer, "").Want(200).Says(`{"certificates":[{"domain":"a.example.com","failures":3,"error":"no route","next_try":"`)
	take("two", `"granted":false`)
	b.Exec(`update acme_leases set until = now()`)
	take("two", `{"granted":true,"failures":3}`)
	b.Call("PUT", lease, gatewayToken, `{"holder":"one","seconds":0}`).Want(404)

	id := testenv.NewAuthority(t, "a").ServerUntil(time.Now().Add(time.Hour), "a.example.com")
	b.Call("PUT", acmePath+acmeIssue, gatewayToken, acmeBody(id.CertPEM+id.KeyPEM, 0)).Want(200)
	b.Call("PUT", lease, gatewayToken, `{"holder":"two","seconds":0}`).Want(200)
	b.Call("GET", "/api/acme", b.viewer, "").Want(200).Says(`"domain":"a.example.com","not_before":"`, `"failures":0}]}`).Hides("PRIVATE", "error", "next_try")
	take("three", `{"granted":true,"failures":0}`)
}

// A domain is forgotten, with its failures: gateways try again at once.
func TestACMEDomainsAreForgotten(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	const other = "0123456789abcdef.certificate.b.a.example.com"
	for _, name := range []string{acmeIssue, strings.Replace(acmeIssue, "0123", "3210", 1), other} {
		b.Call("PUT", acmePath+name, gatewayToken, acmeBody("x", 0)).Want(200)
		b.Call("POST", acmePath+name+"/lease", gatewayToken, `{"holder":"h","seconds":600}`).Want(200)
		b.Call("PUT", acmePath+name+"/lease", gatewayToken, `{"holder":"h","seconds":10800,"failures":9,"error":"no route"}`).Want(200)
	}
	const path = "/api/acme/domains/"
	for _, who := range []string{b.editor, b.viewer, gatewayToken} {
		b.Call("DELETE", path+"a.example.com", who, "").Want(403)
	}
	b.Call("DELETE", path+"a.example.com", b.admin, "").Want(200)
	b.Call("DELETE", path+"a.example.com", b.admin, "").Want(404)
	b.Call("DELETE", path+"%25", b.admin, "").Want(404)
	b.Call("GET", "/api/acme", b.viewer, "").Want(200).Says(`{"certificates":[{"domain":"b.a.example.com"`).Hides(`"a.example.com`)
	b.Call("GET", acmePath+acmeIssue, gatewayToken, "").Want(404)
	b.Call("POST", acmePath+acmeIssue+"/lease", gatewayToken, `{"holder":"next","seconds":600}`).Want(200).Says(`{"granted":true,"failures":0}`)
}
