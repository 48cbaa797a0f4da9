package site_test

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func hashOf(key string) string {
	return (&credential.Hasher{Prefix: credential.DefaultPrefix}).Hash(key)
}

// works reports whether gateways have a key.
func (b *bench) works(key string) bool {
	_, err := b.keys.Get(b.t.Context(), hashOf(key))
	return err == nil
}

// The whole path from sign-up to the end of a key, by forms alone.
func TestADeveloperGetsAKeyWithoutScripts(t *testing.T) {
	b := start(t)
	b.configure(`"key_request_fields":["Use case"],"require_key_approval":true`)
	b.browser().open("/portal/").want(200, "/portal/").says("Orders gold", "All orders.", "100 requests an hour", "Sign up").hides("Sign out")
	b.browser().open("/portal/?q=orders+g").says("Orders gold").hides("Orders free")
	b.browser().open("/portal/?q=nothing").says("No API begins with “nothing”.")

	w := b.signUp("ada@example.com")
	w.open("/portal/apis/gold").want(200, "/portal/apis/gold").says("Plan gold", "Plan free", "https://api.example.com/orders")
	w.open("/portal/request/gold").submit("/portal/request/gold", "field.Use case", "").want(400, "/portal/request/gold").says("Use case")
	w.submit("/portal/request/gold", "field.Use case", "nightly export").want(200, "/portal/requests").says("Orders gold", "pending", "Your request was sent")

	id := b.Call("GET", "/api/portal/requests?state=pending", b.admin, "").Want(200).Object()["Data"].([]any)[0].(map[string]any)["id"].(string)
	former := b.Call("PUT", "/api/portal/requests/approve/"+id, b.admin, "").Want(200).Text("RawKey")
	if letter := b.letter("ada@example.com", former); !strings.Contains(letter, "Plan gold") {
		t.Errorf("the letter with the key: %s", letter)
	}
	w.open("/portal/requests").says("approved")
	w.open("/portal/keys").want(200, "/portal/keys").says("Plan gold", "100 of 100 left", "Orders API")
	path := "/portal/keys/" + hashOf(former)
	w.open(path).want(200, path).says("No calls were counted", "10 calls in 1 s")
	wait.Until(t, "the key works", func() bool { return b.works(former) })

	w.submit(path+"/rotate", "grace", "1h").want(200, path+"/rotate").says("shown this once", "The former one stays valid until")
	if c := w.header.Get("Cache-Control"); c != "no-store" {
		t.Errorf("a page with a secret may be kept: %q", c)
	}
	made := w.byID("secret")
	wait.Until(t, "both keys work", func() bool { return b.works(former) && b.works(made) })
	path = w.follow("I have stored it").at.Path
	w.says("The former key is valid beside this one").hides(made, former)
	w.submit(path+"/revoke").want(400, path+"/revoke").says("Please tick")
	w.open(path).submit(path+"/revoke", "sure", "yes").want(200, "/portal/keys").says("The key was revoked", "You have no key yet")
	wait.Until(t, "no key works", func() bool { return !b.works(former) && !b.works(made) })

	w.submit("/portal/logout").want(200, "/portal/login").says("You are signed out")
	w.open("/portal/keys").want(200, "/portal/login")
	w.submit("/portal/login", "email", "ada@example.com", "password", "wrong horse").want(401, "/portal/login").says("The address or the password is wrong").hides("wrong horse")
	w.submit("/portal/login", "password", "correct horse").want(200, "/portal/keys")
}

// Without approval the answer to the form is the page with the key; sent twice, the form
// makes one key.
func TestAKeyIsShownOnceAndMadeOnce(t *testing.T) {
	b := start(t)
	b.configure(`"require_key_approval":false`)
	w := b.signUp("ada@example.com")
	w.open("/portal/request/free")
	to, sent := w.form("/portal/request/free")
	w.post(to.String(), sent).want(200, "/portal/request/free").says("Your key is shown this once")
	key := w.byID("secret")
	wait.Until(t, "the key works", func() bool { return b.works(key) })
	w.post(to.String(), sent).want(409, "/portal/request/free").says("carried out before", "shown that once").hides(key)
	if n := b.Count("select count(*) from developer_keys"); n != 1 {
		t.Errorf("%d keys", n)
	}
	for _, page := range []string{"/portal/keys", "/portal/requests", "/portal/keys/" + hashOf(key), "/portal/apis/free"} {
		w.open(page).want(200, page).hides(key)
	}
}
