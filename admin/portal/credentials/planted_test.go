package credentials_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// rows returns every row of every table as text.
func (b *bench) rows() map[string][]string {
	b.t.Helper()
	all := make(map[string][]string)
	conn, err := pgx.Connect(b.t.Context(), b.DSN)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = func() error {
		tables, _ := conn.Query(b.t.Context(), "select tablename from pg_tables where schemaname = current_schema()")
		names, err := pgx.CollectRows(tables, pgx.RowTo[string])
		for _, name := range names {
			rows, _ := conn.Query(b.t.Context(), "select t::text from "+pgx.Identifier{name}.Sanitize()+" t")
			if all[name], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
				return err
			}
		}
		return err
	}()
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// guises are the ways in which a secret could stand somewhere.
func guises(secret string) []string {
	return []string{
		secret, hex.EncodeToString([]byte(secret)),
		strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "="),
	}
}

// TestNoSecretIsLeftInTheDatabaseOrTheLog goes through all that developers do with
// secrets, each call in a way that can be repeated, and looks for them afterwards
// wherever something is kept.
func TestNoSecretIsLeftInTheDatabaseOrTheLog(t *testing.T) {
	b := start(t)
	secrets := map[string]string{"the admin's key": b.admin}
	keep := func(what, secret string) string {
		t.Helper()
		if len(secret) < 8 {
			t.Fatalf("%s is %q", what, secret)
		}
		secrets[what] = secret
		return secret
	}
	turn := 0
	call := func(method, path, key, body string) *admintest.Answer {
		t.Helper()
		turn++
		return b.Call(method, path, key, body, "Idempotency-Key", fmt.Sprint("turn ", turn))
	}
	letter := func(kind string) string { // newest of a kind
		t.Helper()
		wait.Until(t, kind+" is in the mailbox", func() bool { return b.Count("select count(*) from deliveries where state = 'pending'") == 0 })
		for _, head := range b.Call("GET", "/api/portal/mailbox", b.admin, "").Want(200).Data() {
			if head["kind"] == kind {
				return b.Call("GET", "/api/portal/mailbox/"+head["id"].(string), b.admin, "").Want(200).Text("text")
			}
		}
		t.Fatalf("no %s", kind)
		return ""
	}
	token := regexp.MustCompile(`token=(\w{43})`)
	b.entry("gold", `"show":true,"auth_type":"authToken"`)
	b.entry("silver", `"show":true,"auth_type":"basic"`)

	first := keep("the first password", "of a planted kind 1")
	call("POST", "/api/portal/signup", "", fmt.Sprintf(`{"email":"ada@dev.example","password":%q}`, first)).Want(200)
	verify := keep("the token to verify", token.FindStringSubmatch(letter("verify_email"))[1])
	session := keep("a session", call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":%q}`, verify, first)).Want(200).Text("access_key"))
	call("POST", "/api/portal/password/forgot", "", `{"email":"ada@dev.example"}`).Want(200)
	reset := keep("the token to reset", token.FindStringSubmatch(letter("reset_password_email"))[1])
	second := keep("the second password", "of a planted kind 2")
	call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":%q}`, reset, second)).Want(200)
	call("GET", "/api/portal/me", session, "").Want(401)
	call("POST", "/api/portal/login", "", `{"email":"ada@dev.example","password":"a wrong planted kind"}`).Want(401)
	keep("a wrong password", "a wrong planted kind")
	session = keep("another session", call("POST", "/api/portal/login", "", fmt.Sprintf(`{"email":"ada@dev.example","password":%q}`, second)).Want(200).Text("access_key"))
	third := keep("the third password", "of a planted kind 3")
	call("POST", "/api/portal/me/password", session, fmt.Sprintf(`{"current_password":%q,"password":%q}`, second, third)).Want(200)
	dev := b.Call("GET", "/api/portal/me", session, "").Want(200).Text("id")
	call("POST", "/api/portal/developers/password/"+dev, b.approver, fmt.Sprintf(`{"password":%q}`, keep("the fourth password", "of a planted kind 4"))).Want(200)
	session = b.login("ada")

	made := call("PUT", "/api/portal/requests/approve/"+b.request(dev, "gold"), b.approver, "").Want(200)
	keep("a key", made.Text("RawKey"))
	if got := letter("key_email"); !strings.Contains(got, made.Text("RawKey")) {
		t.Errorf("the letter is %q", got)
	}
	made = call("PUT", "/api/portal/requests/approve/"+b.request(dev, "silver"), b.approver, "").Want(200)
	keep("a user's password", made.Text("Password"))
	for i, one := range b.Call("GET", "/api/portal/me/keys", session, "").Want(200).Data() {
		turned := call("POST", "/api/portal/me/keys/"+one["key_id"].(string)+"/rotate", session, `{"grace":"0s"}`).Want(200)
		secret := turned.Text("Password")
		if secret == "" {
			secret = turned.Text("RawKey")
		}
		keep(fmt.Sprint("what came of rotation ", i), secret)
	}
	keep("an operator's key", call("POST", "/api/portal/developers/"+dev+"/keys", b.approver, `{"apply_policies":["gold"]}`).Want(200).Text("RawKey"))
	app := call("POST", "/api/portal/developers/"+dev+"/oauth-clients", b.approver, `{"policy_id":"gold"}`).Want(201)
	id := app.Text("client_id")
	keep("a client's secret", app.Text("secret"))
	renewed := keep("a client's other secret", call("POST", "/api/portal/me/oauth-clients/"+id+"/secret", session, "").Want(200).Text("secret"))
	access := keep("an access token", b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", id, "client_secret", renewed).Want(200).Text("access_token"))
	b.postForm("/oauth/revoke", "client_id", id, "client_secret", renewed, "token", access).Want(200)
	hook := call("POST", "/api/portal/me/webhooks", session, `{"url":"https://93.184.216.34/x","events":["*"]}`).Want(201)
	shown, _ := hook.Object()["Meta"].(map[string]any)["secret"].(string)
	keep("a webhook's secret", strings.TrimPrefix(shown, "whsec_"))
	keep("a user's access key", call("POST", "/api/users", b.admin, `{"email_address":"new@example.com","role":"viewer"}`).Want(200).Text("access_key"))

	kept := b.rows()
	kept["log"] = []string{b.log.String()}
	if len(kept) < 20 || len(kept["deliveries"]) < 4 || len(kept["repeatable_calls"]) < 5 {
		t.Fatalf("%d tables were looked through, %d deliveries", len(kept), len(kept["deliveries"]))
	}
	for what, secret := range secrets {
		for _, guise := range guises(secret) {
			for table, rows := range kept {
				for _, row := range rows {
					if strings.Contains(row, guise) {
						t.Errorf("%s stands in %s: %.300s", what, table, row)
					}
				}
			}
		}
	}
}
