package admin

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// withMailbox gives an admin what it needs to write letters.
func withMailbox(d *Deps) {
	d.MasterKey, d.Portal = secret.NewKey(), portal.Settings{Mailbox: 100, PublicURL: "http://127.0.0.1/portal"}
}

// letterTo waits for letters to an address, and returns the text of the newest.
func (b *bench) letterTo(address string, count int) (text string) {
	b.t.Helper()
	wait.Until(b.t, "a letter to "+address, func() bool {
		list := b.Call("GET", "/api/portal/mailbox?q="+address, b.admin, "").Want(200).Object()["Data"].([]any)
		if len(list) < count {
			return false
		}
		text = b.Call("GET", "/api/portal/mailbox/"+list[0].(map[string]any)["id"].(string), b.admin, "").Want(200).Text("text")
		return true
	})
	return text
}

var linkIn = regexp.MustCompile(`(http\S+)/enter#(\w{43})`)

func TestALetterForALostPassword(t *testing.T) {
	b, now := startAt(t, withMailbox)
	_, email := b.withPassword("editor")
	forgot := func(address string) string {
		t.Helper()
		return b.Call("POST", "/api/users/forgot", "", fmt.Sprintf(`{"email_address":%q}`, address)).Want(200).Text("Message")
	}
	gateway := b.Text("select email from users where role = 'gateway' limit 1")
	b.Call("POST", "/api/users", b.admin, `{"email_address":"gone@example.com","role":"viewer","active":false}`).Want(200)
	said := map[string]bool{}
	for _, address := range []string{email, "nobody@example.com", gateway, "gone@example.com", "no address", "a\r\nBcc: b@example.com", strings.Repeat("x", 300) + "@example.com"} {
		said[forgot(address)] = true
	}
	if len(said) != 1 {
		t.Errorf("answers differ: %v", said)
	}
	text := b.letterTo(email, 1)
	if n := b.Count("select count(*) from deliveries"); n != 1 {
		t.Errorf("%d letters", n)
	}
	found := linkIn.FindStringSubmatch(text)
	if found == nil || found[1] != b.URL {
		t.Fatalf("%s", text)
	}
	u := b.signIn(fmt.Sprintf(`{"enter":%q}`, found[2]))
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"enter":%q}`, found[2])).Want(401)
	u.take(u.call("POST", "/api/users/me/actions/reset", `{"new_password":"another horse"}`).Want(200))
	b.signIn(fmt.Sprintf(`{"email":%q,"password":"another horse"}`, email))

	forgot(strings.ToUpper(email))
	found = linkIn.FindStringSubmatch(b.letterTo(email, 2))
	now.add(time.Hour + time.Minute)
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"enter":%q}`, found[2])).Want(401)

	// Nobody but admins sees what the letter says, and a mailbox gets five at once.
	for range 6 {
		forgot(email)
	}
	if n := b.Count("select count(*) from deliveries"); n < 5 || n > 7 {
		t.Errorf("%d letters", n)
	}
	id := b.Text("select id from deliveries limit 1")
	b.Call("GET", "/api/portal/deliveries/"+id, b.user("approver"), "").Want(200).Hides("enter#")
	b.Call("POST", "/api/users/forgot", "", `{"email_address":"x@example.com"}`, "Sec-Fetch-Site", "cross-site").Want(403)
}

// Letters that strangers ask for do not end the links that an admin made.
func TestLettersLeaveOtherLinksValid(t *testing.T) {
	b, _ := startAt(t, withMailbox)
	id, email := b.withPassword("editor")
	link := b.Call("POST", "/api/users/"+id+"/actions/enter", b.admin, "").Want(200).Text("link")
	for range 5 {
		b.Call("POST", "/api/users/forgot", "", fmt.Sprintf(`{"email_address":%q}`, email)).Want(200)
	}
	_, token, _ := strings.Cut(link, "#")
	b.signIn(fmt.Sprintf(`{"enter":%q}`, token))
}

// A link leads where the installation says, not where the caller does.
func TestLinksOfLettersLeadToTheInstallation(t *testing.T) {
	for _, c := range []struct {
		public, host string
		status       int
	}{
		{"", "evil.example", 409},
		{"https://admin.example.com/sluice/", "evil.example", 200},
	} {
		b, _ := startAt(t, withMailbox, func(d *Deps) { d.PublicURL = c.public })
		_, email := b.withPassword("viewer")
		req, err := http.NewRequest("POST", b.URL+"/api/users/forgot", strings.NewReader(fmt.Sprintf(`{"email_address":%q}`, email)))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("called as %s with the public URL %q: %d", c.host, c.public, resp.StatusCode)
		}
		if c.status != 200 {
			continue
		}
		if found := linkIn.FindStringSubmatch(b.letterTo(email, 1)); found == nil || found[1] != "https://admin.example.com/sluice" {
			t.Errorf("link %v", found)
		}
	}
	b, _ := startAt(t) // without a key to seal letters with
	b.Call("POST", "/api/users/forgot", "", `{"email_address":"nobody@example.com"}`).Want(503).Says("master_key")
}

func TestManyLettersFromOneAddress(t *testing.T) {
	b, _ := startAt(t, withMailbox, func(d *Deps) { d.LoginRate = 3 })
	for range 3 {
		b.Call("POST", "/api/users/forgot", "", `{"email_address":"x@example.com"}`).Want(200)
	}
	if got := b.Call("POST", "/api/users/forgot", "", `{"email_address":"x@example.com"}`).Want(429); got.Header.Get("Retry-After") == "" {
		t.Error("without Retry-After")
	}
}

func TestInvitationsByLetter(t *testing.T) {
	b, now := startAt(t, withMailbox)
	made := b.Call("POST", "/api/users", b.admin, `{"email_address":"new@example.com","role":"editor","invite":"letter"}`).Want(200).Hides("/enter#")
	text := b.letterTo("new@example.com", 1)
	found := linkIn.FindStringSubmatch(text)
	if found == nil || !strings.Contains(text, "You are invited") && !strings.Contains(text, "you are invited") {
		t.Fatalf("%s", text)
	}
	now.add(71 * time.Hour)
	b.signIn(fmt.Sprintf(`{"enter":%q}`, found[2]))
	path := "/api/users/" + made.Text("Meta") + "/actions/invite"
	again := b.Call("POST", path, b.admin, `{"by":"letter"}`).Want(200)
	if again.Text("link") != "" || again.Text("sent_to") != "new@example.com" {
		t.Errorf("%s", again.Body)
	}
	b.letterTo("new@example.com", 2)
	b.Call("POST", path, b.admin, "").Want(200).Says("/enter#")
	b.Call("POST", path, b.admin, `{"by":"pigeon"}`).Want(400).Says("by: must be link or letter")
	b.Call("POST", "/api/users", b.admin, `{"email_address":"y@example.com","invite":"pigeon"}`).Want(400).Says("invite: must be link or letter")

	none, _ := startAt(t)
	none.Call("POST", "/api/users", none.admin, `{"email_address":"new@example.com","invite":"letter"}`).Want(503)
	if n := none.Count("select count(*) from users where email = 'new@example.com'"); n != 0 {
		t.Error("a user was made whom nobody can invite")
	}
}
