package developers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

func TestSignUpCountsOnceTheLetterComesBack(t *testing.T) {
	b := start(t)
	b.conf.set(func(c *model.Configuration) { c.SignupFields = []string{"Name", "Company"} })
	b.Call("POST", "/api/portal/signup", "", `{"email":"Ann@example.com","password":"open sesame","fields":{"Name":"Ann O'Neil","Company":"C"}}`).
		Want(200).Says(letterSent).Hides("access_key", SessionPrefix)
	letters, token := b.post.take()
	if !slices.Equal(letters, []string{"verify_email Ann@example.com"}) {
		t.Fatalf("letters %v", letters)
	}
	b.login("ann@example.com", "open sesame").Want(401).Says("not verified")
	if letters, _ := b.post.take(); !slices.Equal(letters, []string{"verify_email Ann@example.com"}) {
		t.Errorf("after a log-in that came too early: letters %v", letters)
	}
	b.Call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":"open sesamE"}`, token)).Want(401)
	in := b.Call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":"open sesame"}`, token)).Want(200).Says("Logged in", `"idle_seconds":3600`)
	session := in.Text("access_key")
	if !wellFormed(session, SessionPrefix) {
		t.Fatalf("session %q", session)
	}
	b.Call("GET", "/api/portal/me", session, "").Want(200).Says("Ann@example.com", "Ann O'Neil", `"verified":true`, in.Text("ID")).Hides("argon2")
	if letters, _ := b.post.take(); !slices.Equal(letters, []string{"welcome_email Ann@example.com"}) {
		t.Errorf("letters %v", letters)
	}
	b.Call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":"open sesame"}`, token)).Want(404).Says(invalidToken)
	b.Call("POST", "/api/portal/logout", session, "").Want(200)
	b.Call("GET", "/api/portal/me", session, "").Want(401)
	b.login("ANN@EXAMPLE.COM", "open sesame").Want(200)
}

func TestSignUpTellsNobodyWhoHasAnAccount(t *testing.T) {
	b := start(t)
	b.make("known@example.com")
	closed := b.make("closed@example.com")
	b.Call("PUT", "/api/portal/developers/"+closed, "approver", `{"email":"closed@example.com","inactive":true}`).Want(200)
	b.signUp("pending@example.com", "open sesame 1").Want(200)
	b.post.take()
	first := string(b.signUp("new@example.com", "open sesame 2").Want(200).Body)
	for email, letter := range map[string]string{
		"new@example.com": "verify_email", "pending@example.com": "verify_email", "KNOWN@example.com": "reset_password_email", "closed@example.com": "",
	} {
		b.post.take()
		began := time.Now()
		if got := b.signUp(email, "open sesame 3").Want(200); string(got.Body) != first {
			t.Errorf("%s: %s, and for others %s", email, got.Body, first)
		}
		if took := time.Since(began); took < minAnswerTime {
			t.Errorf("%s: answered after %v", email, took)
		}
		letters, _ := b.post.take()
		if got := strings.ToLower(strings.Join(letters, "")); letter != "" && got != letter+" "+strings.ToLower(email) || letter == "" && got != "" {
			t.Errorf("%s: letters %v", email, letters)
		}
	}
	b.login("known@example.com", "open sesame 3").Want(401)
	b.login("known@example.com", "open sesame").Want(200)
	for _, email := range []string{"known@example.com", "nobody@example.com", "no address", strings.Repeat("x", 300)} {
		if got := b.Call("POST", "/api/portal/password/forgot", "", fmt.Sprintf(`{"email":%q}`, email)).Want(200); string(got.Body) != first {
			t.Errorf("%s: %s", email, got.Body)
		}
	}
}

// TestASignUpAndALogInTogetherTellNobodyWhoHasAnAccount signs up with addresses of
// others and logs in with the password that was chosen: right for a sign-up that
// nobody went on with, wrong for an account.
func TestASignUpAndALogInTogetherTellNobodyWhoHasAnAccount(t *testing.T) {
	b := start(t)
	b.make("known@example.com")
	var bodies [2]string
	for i, email := range []string{"known@example.com", "new@example.com"} {
		b.signUp(email, "of the thief").Want(200)
		for _, want := range []int{401, 401, 401, 429} {
			began := time.Now()
			a := b.login(email, "of the thief").Want(want)
			bodies[i] += strings.ReplaceAll(string(a.Body), email, "")
			if took := time.Since(began); want == 401 && took < minAnswerTime {
				t.Errorf("%s: answered after %v", email, took)
			}
		}
	}
	if bodies[0] != bodies[1] {
		t.Errorf("who has an account gets %s, who has none %s", bodies[0], bodies[1])
	}
}

// TestWithoutAMasterKeyNobodyLearnsWhoHasAnAccount has letters that can hold no
// token, which is said to everybody alike.
func TestWithoutAMasterKeyNobodyLearnsWhoHasAnAccount(t *testing.T) {
	b := start(t)
	b.make("known@example.com")
	closed := b.make("closed@example.com")
	b.Call("PUT", "/api/portal/developers/"+closed, "approver", `{"email":"closed@example.com","inactive":true}`).Want(200)
	b.post.none = rest.Unavailable("no letter can hold a token")
	for _, email := range []string{"known@example.com", "closed@example.com", "nobody@example.com"} {
		b.Call("POST", "/api/portal/password/forgot", "", fmt.Sprintf(`{"email":%q}`, email)).Want(503).Says("no letter")
		b.signUp(email, "open sesame").Want(503).Says("no letter")
	}
	if letters, _ := b.post.take(); letters != nil || b.Count("select count(*) from developers") != 2 {
		t.Errorf("letters %v", letters)
	}
}

// TestAnAddressIsNotTakenOverBeforeItsOwnerComes lets somebody sign up with an
// address that is not theirs, before and after its owner does.
func TestAnAddressIsNotTakenOverBeforeItsOwnerComes(t *testing.T) {
	b := start(t)
	verify := func(token, plain string) *admintest.Answer {
		return b.Call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":%q}`, token, plain))
	}
	b.signUp("ann@example.com", "of the thief").Want(200)
	_, unasked := b.post.take()
	verify(unasked, "of the owner").Want(401) // the owner follows the link, and does not know the password
	b.signUp("ann@example.com", "of the owner").Want(200)
	_, asked := b.post.take()
	b.signUp("ann@example.com", "of the thief").Want(200)
	_, again := b.post.take()
	verify(unasked, "of the thief").Want(404)
	verify(asked, "of the owner").Want(404)
	verify(again, "of the owner").Want(401)
	b.login("ann@example.com", "of the thief").Want(401)
	b.post.take()
	b.Call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).Want(200)
	_, reset := b.post.take()
	b.Call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":"of the owner"}`, reset)).Want(200)
	b.login("ann@example.com", "of the owner").Want(200)
	b.login("ann@example.com", "of the thief").Want(401)
	verify(again, "of the thief").Want(404)
}

func TestSwitchesOfTheDoor(t *testing.T) {
	b := start(t)
	b.conf.set(func(c *model.Configuration) { c.DisableSignup = true })
	b.signUp("ann@example.com", "open sesame").Want(403).Says("Sign-up is switched off")

	b.conf.set(func(c *model.Configuration) { c.DisableSignup, c.DisableVerification = false, true })
	session := b.signUp("ann@example.com", "open sesame").Want(200).Text("access_key")
	b.Call("GET", "/api/portal/me", session, "").Want(200)
	b.signUp("ANN@example.com", "open sesame").Want(409).Says("There is an account")
	if letters, _ := b.post.take(); !slices.Equal(letters, []string{"welcome_email ann@example.com"}) {
		t.Errorf("letters %v", letters)
	}

	b.conf.set(func(c *model.Configuration) { c.DisableAutoLogin = true })
	b.signUp("bob@example.com", "open sesame").Want(200).Says("Signed up").Hides("access_key")
	b.session("bob@example.com")
	b.conf.set(func(c *model.Configuration) { c.DisableVerification = false })
	b.session("bob@example.com")
	b.signUp("eve@example.com", "open sesame").Want(200)
	_, token := b.post.take()
	b.Call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":"open sesame"}`, token)).Want(200).Says("log in").Hides("access_key")
	b.session("eve@example.com")

	b.conf.set(func(c *model.Configuration) { c.DisableLogin = true })
	b.login("eve@example.com", "open sesame").Want(403).Says("Log-in is switched off")
	b.login("eve@example.com", "wrong").Want(403)

	b.conf.set(func(c *model.Configuration) { *c = model.Configuration{} })
	b.signUp("pia@example.com", "open sesame").Want(200)
	b.conf.set(func(c *model.Configuration) { c.DisableVerification = true })
	b.session("pia@example.com") // nobody asks any more
}

func TestWhatIsWrongWithASignUpIsNamed(t *testing.T) {
	b := start(t)
	b.conf.set(func(c *model.Configuration) { c.SignupFields = []string{"Name"} })
	for _, c := range []struct {
		body string
		want int
		says string
	}{
		{``, 400, "it is empty"},
		{`{`, 400, "malformed"},
		{`{"email":1}`, 400, "email must not be a JSON number"},
		{`{"email":"x@example.com","password":"open sesame","role":"admin"}`, 400, `unknown member \"role\"`},
		{`{"email":"x@example.com","password":"open sesame"}`, 400, `fields[\"Name\"]: is needed`},
		{`{"email":"x@example.com","password":"open sesame","fields":{"Name":"  "}}`, 400, `is needed`},
		{`{"email":"x@example.com","password":"open sesame","fields":{"Name":"x","Admin":"yes"}}`, 400, `fields[\"Admin\"]: is not asked for; those that are: Name`},
		{`{"email":"x@example.com","password":"open sesame","fields":{"Name":"` + strings.Repeat("x", 5000) + `"}}`, 400, "at most 4096 bytes"},
		{`{"email":"x","password":"12345","fields":{"Name":"x"}}`, 400, "email: must be an address"},
		{`{"email":"x@example.com","password":"12345","fields":{"Name":"x"}}`, 400, "password: must have 6…1024 bytes"},
		{`{"email":"x@example.com","password":"` + strings.Repeat("x", 1025) + `","fields":{"Name":"x"}}`, 400, "6…1024 bytes"},
		{`{"email":"x@example.com","password":"X@EXAMPLE.com","fields":{"Name":"x"}}`, 400, "must not be the address"},
		{`{"email":"x@example.com","password":"open sesame","fields":{"Name":"x"},"org_id":"three"}`, 400, "org_id: names no organisation"},
	} {
		b.Call("POST", "/api/portal/signup", "", c.body).Want(c.want).Says(c.says)
	}
	b.Call("POST", "/api/portal/signup?org_id=two", "", `{"email":"x@example.com","password":"open sesame","fields":{"Name":"x"}}`).Want(200)
	if b.Count("select count(*) from developers") != 1 || b.Count("select count(*) from developers where org_id = 'two'") != 1 {
		t.Error("not the one developer of the other organisation")
	}
	for _, body := range []string{`{"token":"x","password":"y"}`, `{"token":"` + strings.Repeat("0", rest.KeyDigits) + `","password":"open sesame"}`} {
		b.Call("POST", "/api/portal/verify", "", body).Want(404).Says(invalidToken)
		b.Call("POST", "/api/portal/password/reset", "", body).Want(404).Says(invalidToken)
	}
	b.Call("POST", "/api/portal/login?org_id=three", "", `{"email":"x@example.com","password":"y"}`).Want(400)
	b.Call("POST", "/api/portal/login?org_id=two", "", `{"email":"a\u0000b","password":"y"}`).Want(401)
	b.Call("POST", "/api/portal/login", "", `{"email":"x@example.com","password":["y"]}`).Want(400).Says("password must not be a JSON array")
}

// TestEveryGuessCostsAHash has a hasher without a turn for anybody: whoever is not
// told so was answered without a hash, and sooner than others.
func TestEveryGuessCostsAHash(t *testing.T) {
	b := start(t)
	b.make("known@example.com")
	closed := b.make("closed@example.com")
	b.Call("PUT", "/api/portal/developers/"+closed, "approver", `{"email":"closed@example.com","inactive":true}`).Want(200)
	b.Call("POST", "/api/portal/developers", "approver", `{"email":"none@example.com"}`).Want(200)
	b.signUp("pending@example.com", "open sesame").Want(200)
	b.service.Passwords = password.NewHasher(0, 1, time.Millisecond)
	for _, email := range []string{"known@example.com", "closed@example.com", "none@example.com", "pending@example.com", "nobody@example.com", strings.Repeat("x", 400), ""} {
		for _, plain := range []string{"open sesame", "", strings.Repeat("x", 2000)} {
			b.login(email, plain).Want(503).Says("try again")
			b.Call("POST", "/api/portal/developers/verify_credentials", "approver", fmt.Sprintf(`{"username":%q,"password":%q}`, email, plain)).Want(503)
		}
	}
	for _, email := range []string{"known@example.com", "closed@example.com", "pending@example.com", "new@example.com"} {
		b.signUp(email, "open sesame").Want(503)
	}
}

func TestGuessesAtOneAccountSlowDown(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	for _, email := range []string{"ann@example.com", "nobody@example.com"} {
		for i, want := range []int{401, 401, 401, 429, 429} {
			b.From = fmt.Sprintf("192.0.2.%d", i)
			b.login(strings.ToUpper(email), "wrong").Want(want)
		}
	}
	b.login("ann@example.com", "open sesame").Want(429).Says("Too many attempts at this account")
	b.clock.pass(2 * time.Second)
	b.session("ann@example.com")
	b.login("ann@example.com", "wrong").Want(401)
	b.login("ann@example.com", "wrong").Want(401)
	b.session("ann@example.com")
	b.login("ann@example.com", "wrong").Want(401)
}

func TestGuessesFromOneAddressSlowDown(t *testing.T) {
	b := start(t, func(d *Deps) { d.LoginRate = 0 })
	b.make("ann@example.com")
	b.make("bob@example.com")
	for range 20 {
		b.session("ann@example.com")
	}
	for i := range 5 {
		b.login(fmt.Sprintf("x%d@example.com", i), "wrong").Want(401)
	}
	b.login("bob@example.com", "open sesame").Want(429).Says("from this address")
	b.From = "192.0.2.99"
	b.session("bob@example.com")
	for i := range 5 {
		b.signUp(fmt.Sprintf("y%d@example.com", i), "open sesame").Want(200)
	}
	b.signUp("y6@example.com", "open sesame").Want(429)
	b.Call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).Want(429)
	b.From = "2001:db8::1"
	for range 5 {
		b.Call("POST", "/api/portal/password/reset", "", `{"token":"x","password":"open sesame"}`).Want(404)
	}
	b.From = "2001:db8::2"
	b.Call("POST", "/api/portal/password/reset", "", `{"token":"x","password":"open sesame"}`).Want(429)
}

// TestGuessesDoNotLockOutThoseWhoLoggedInLately has several developers behind one
// proxy, and one of them guesses. Wrong guesses get the same answer, which does not show
// who logged in.
func TestGuessesDoNotLockOutThoseWhoLoggedInLately(t *testing.T) {
	b := start(t, func(d *Deps) { d.LoginRate = 0 })
	b.make("ann@example.com")
	b.make("bob@example.com")
	b.session("ann@example.com")
	spend := func() {
		for i := range 6 {
			b.login(fmt.Sprintf("x%d@example.com", i), "wrong")
		}
	}
	spend()
	b.login("bob@example.com", "open sesame").Want(429).Says("from this address")
	b.session("ann@example.com")
	for range 4 { // the limit of the account holds as well, and looks the same
		began := time.Now()
		known, unknown := b.login("ann@example.com", "wrong").Want(429), b.login("x1@example.com", "wrong").Want(429)
		if string(known.Body) != string(unknown.Body) || known.Header.Get("Retry-After") != unknown.Header.Get("Retry-After") {
			t.Errorf("a developer who logged in gets %s, others %s", known.Body, unknown.Body)
		}
		if took := time.Since(began); took < 2*minAnswerTime {
			t.Errorf("two answers after %v", took)
		}
	}
	b.login("ann@example.com", "open sesame").Want(429).Says("from this address")
	b.clock.pass(2 * time.Second)
	b.session("ann@example.com")
	b.clock.pass(recentFor)
	spend()
	b.login("ann@example.com", "open sesame").Want(429)
}

func TestARightTokenIsTakenHoweverManyWereWrong(t *testing.T) {
	b := start(t, func(d *Deps) { d.LoginRate = 0 })
	b.make("ann@example.com")
	b.Call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).Want(200)
	_, token := b.post.take()
	for range 5 {
		b.Call("POST", "/api/portal/password/reset", "", `{"token":"x","password":"open sesame 2"}`).Want(404)
	}
	b.Call("POST", "/api/portal/password/reset", "", `{"token":"x","password":"open sesame 2"}`).Want(429)
	b.Call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":"open sesame 2"}`, token)).Want(200)
}

func TestAMailboxIsNotFlooded(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	for i := range 12 {
		b.From = fmt.Sprintf("192.0.2.%d", i)
		email := []string{"ann@example.com", "Ann@example.com"}[i%2]
		b.Call("POST", "/api/portal/password/forgot", "", fmt.Sprintf(`{"email":%q}`, email)).Want(200)
		b.signUp(strings.ToUpper(email), "open sesame").Want(200)
	}
	if letters, _ := b.post.take(); len(letters) != 5 {
		t.Errorf("%d letters", len(letters))
	}
	if n := b.Count("select count(*) from developer_tokens where purpose = 'reset'"); n != maxLetters {
		t.Errorf("%d tokens can be used", n)
	}
}

func TestATokenIsGoodOnce(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	old := b.session("ann@example.com")
	b.Call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).Want(200)
	_, token := b.post.take()
	var mu sync.Mutex
	got := map[int]int{}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			r := b.Call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":"open sesame %d"}`, token, i))
			mu.Lock()
			defer mu.Unlock()
			got[r.Status]++
		})
	}
	group.Wait()
	if got[200] != 1 || got[404] != 7 {
		t.Errorf("of eight uses: %v", got)
	}
	b.Call("GET", "/api/portal/me", old, "").Want(401)
	if n := b.Count("select count(*) from developer_tokens"); n != 0 {
		t.Errorf("%d tokens are left", n)
	}

	b.signUp("bob@example.com", "open sesame").Want(200)
	_, token = b.post.take()
	got = map[int]int{}
	for range 3 {
		group.Go(func() {
			r := b.Call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":"open sesame"}`, token))
			mu.Lock()
			defer mu.Unlock()
			got[r.Status]++
		})
	}
	group.Wait()
	if got[200] != 1 || got[404]+got[200] != 3 {
		t.Errorf("of three uses: %v", got)
	}
}

func TestLettersTokensEnd(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	forget := func() string {
		b.Call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).Want(200)
		_, token := b.post.take()
		return token
	}
	late := forget()
	b.clock.pass(resetFor)
	b.Call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":"open sesame 2"}`, late)).Want(404)
	good := forget()
	b.Call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":"open"}`, good)).Want(400)
	b.Call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":"open sesame"}`, good)).Want(400).Says("last 5")
	b.Call("POST", "/api/portal/verify", "", fmt.Sprintf(`{"token":%q,"password":"open sesame"}`, good)).Want(404)
	b.Call("GET", "/api/portal/me", SessionPrefix+good, "").Want(401)
	b.Call("POST", "/api/portal/password/reset", "", fmt.Sprintf(`{"token":%q,"password":"open sesame 2"}`, good)).Want(200)
	for _, statement := range []string{"select count(*) from developer_tokens where position($1 in encode(token_hash, 'escape')) > 0", "select count(*) from audit_log where position($1 in coalesce(before::text, '') || coalesce(after::text, '')) > 0"} {
		if b.Count(statement, good) != 0 {
			t.Error("a token is stored in clear")
		}
	}
}

func TestTwoSignUpsOfOneAddressAreOneAccount(t *testing.T) {
	for _, verified := range []bool{true, false} {
		b := start(t)
		b.conf.set(func(c *model.Configuration) { c.DisableVerification = !verified })
		var mu sync.Mutex
		got := map[int]int{}
		var group sync.WaitGroup
		for i := range 5 {
			group.Go(func() {
				r := b.signUp([]string{"ann@example.com", "ANN@example.com"}[i%2], fmt.Sprintf("open sesame %d", i))
				mu.Lock()
				defer mu.Unlock()
				got[r.Status]++
			})
		}
		group.Wait()
		if n := b.Count("select count(*) from developers"); n != 1 {
			t.Errorf("%d developers", n)
		}
		if verified && got[200] != 5 || !verified && (got[200] != 1 || got[409] != 4) {
			t.Errorf("verified %v: answers %v", verified, got)
		}
	}
}

func TestALetterThatCannotBeQueuedUndoesWhatItTellsOf(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	b.post.fail = store.ErrUnavailable
	b.signUp("new@example.com", "open sesame").Want(503)
	b.Call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).Want(503)
	b.conf.set(func(c *model.Configuration) { c.DisableVerification = true })
	b.signUp("new@example.com", "open sesame").Want(503)
	if b.Count("select count(*) from developers") != 1 || b.Count("select count(*) from developer_tokens") != 0 {
		t.Error("something was kept")
	}
	b.post.fail = nil
	b.signUp("new@example.com", "open sesame").Want(200)
}

func TestADatabaseThatIsAwayIsSaid(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	session := b.session("ann@example.com")
	b.Exec("alter table developer_tokens rename to away")
	b.login("ann@example.com", "open sesame").Want(503)
	b.signUp("new@example.com", "open sesame").Want(503)
	b.Call("GET", "/api/portal/me", session, "").Want(503)
	b.Call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com","inactive":true}`).Want(503)
	if b.Count("select count(*) from developers where inactive") != 0 || b.Count("select count(*) from developers") != 1 {
		t.Error("half of it was written")
	}
	b.Exec("alter table away rename to developer_tokens")
	b.Call("GET", "/api/portal/me", session, "").Want(200)
	if _, err := b.service.Identify(t.Context(), []byte("slp_")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a credential that is none: %v", err)
	}
}
