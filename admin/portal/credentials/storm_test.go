package credentials_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// storm is many people who do all that there is to do about one developer, at
// once.
type storm struct {
	*bench
	developer, session string

	mu       sync.Mutex
	requests []string
	apps     [][2]string // id and secret
	answers  map[string]int
}

// one returns one of some things; the zero value when there are none.
func one[T any](s *storm, of *[]T) (picked T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(*of) > 0 {
		picked = (*of)[rand.IntN(len(*of))]
	}
	return picked
}

// do makes a call and notes what came of it. Where it is told to try again, that
// has to work.
func (s *storm) do(method, path, who, body string, headers ...string) *admintest.Answer {
	r, err := s.Try(method, path, who, body, headers...)
	for again := 1; err == nil && r.Status == 503 && again <= 10; again++ {
		<-time.After(time.Duration(again) * 20 * time.Millisecond) // as who was told to try again does
		r, err = s.Try(method, path, who, body, headers...)
	}
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
		return admintest.NoAnswer(s.t)
	}
	s.mu.Lock()
	s.answers[fmt.Sprint(method, " ", r.Status)]++
	s.mu.Unlock()
	if r.Status >= 500 {
		s.t.Errorf("%s %s: %d %s", method, path, r.Status, r.Body)
	}
	return r
}

func (s *storm) askForPolicy() {
	r := s.do("POST", "/api/portal/requests", s.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":%q,"version":"v2"}`, s.developer, one(s, &[]string{"gold", "silver"})))
	if r.Status == 200 {
		s.mu.Lock()
		s.requests = append(s.requests, r.Text("Message"))
		s.mu.Unlock()
	}
}

// key is the id of one of the developer's keys.
func (s *storm) key() string {
	r := s.do("GET", "/api/portal/me/keys", s.session, "")
	if r.Status != 200 {
		return "none"
	}
	if all := r.Data(); len(all) > 0 {
		return all[rand.IntN(len(all))]["key_id"].(string)
	}
	return "none"
}

func (s *storm) app() {
	r := s.do("POST", "/api/portal/developers/"+s.developer+"/oauth-clients", s.approver, `{"policy_id":"gold"}`)
	if r.Status == 201 {
		s.mu.Lock()
		s.apps = append(s.apps, [2]string{r.Text("client_id"), r.Text("secret")})
		s.mu.Unlock()
	}
}

func (s *storm) token(end bool) {
	app := one(s, &s.apps)
	form := "client_id=" + app[0] + "&client_secret=" + app[1]
	r := s.do("POST", "/oauth/token", "", "grant_type=client_credentials&"+form, "Content-Type", "application/x-www-form-urlencoded")
	if r.Status == 200 && end {
		s.do("POST", "/oauth/revoke", "", "token="+r.Text("access_token")+"&"+form, "Content-Type", "application/x-www-form-urlencoded")
	}
}

// turn does one thing.
func (s *storm) turn() {
	const own = "/api/portal/me/"
	of := "/api/portal/developers/" + s.developer
	switch rand.IntN(16) {
	case 0, 1:
		s.askForPolicy()
	case 2, 3:
		s.do("PUT", "/api/portal/requests/approve/"+one(s, &s.requests), s.approver, "")
	case 4:
		s.do("PUT", "/api/portal/requests/reject/"+one(s, &s.requests), s.approver, "")
	case 5:
		s.do("DELETE", "/api/portal/requests/"+one(s, &s.requests), s.approver, "")
	case 6:
		s.do("POST", own+"keys/"+s.key()+"/rotate", s.session, `{"grace":"1h"}`)
	case 7:
		s.do("DELETE", own+"keys/"+s.key(), s.session, "")
	case 8:
		s.do("PUT", of+"/keys/"+s.key(), s.approver, `{"apply_policies":["gold","silver"]}`)
	case 9:
		s.do("DELETE", "/api/keys/"+s.key(), s.editor, "")
	case 10:
		s.app()
	case 11:
		s.do("DELETE", own+"oauth-clients/"+one(s, &s.apps)[0], s.session, "")
	case 12, 13:
		s.token(rand.IntN(2) == 0)
	case 14:
		s.do("PUT", of, s.approver, `{"email":"ada@dev.example"}`)
	case 15:
		s.do("PUT", "/api/keys/"+s.key()+"/policy", s.editor, `{"policy":"gold"}`)
	}
}

// TestAStormAboutOneDeveloperLeavesAllAsItShouldBe has twenty people at work at
// once, and looks for what does not fit together afterwards.
func TestAStormAboutOneDeveloperLeavesAllAsItShouldBe(t *testing.T) {
	b := start(t)
	b.configure(`"oauth_usage_limit":5`)
	defer b.HTTP.CloseIdleConnections() // some were opened and never used, which the admin would wait for
	s := &storm{bench: b, developer: b.developer("ada"), answers: make(map[string]int)}
	s.session = b.login("ada")
	end := time.Now().Add(stormFor)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for time.Now().Before(end) {
				s.turn()
			}
		})
	}
	removed := 0
	for time.Now().Before(end) { // and deletes the developer at times, who comes back
		<-time.After(stormFor / 4)
		if s.do("DELETE", "/api/portal/developers/"+s.developer, s.approver, "").Status != 200 {
			continue
		}
		removed++
		b.Exec("insert into developers (id, org_id, email, verified_at) values ($1, $2, 'ada@dev.example', now()) on conflict do nothing", s.developer, b.org)
		b.login("ada")
	}
	all.Wait()
	t.Log(s.answers, removed)
	for what, query := range map[string]string{
		"developers' keys that are none":    "select count(*) from developer_keys d where not exists (select from keys k where k.key_hash = d.key_hash)",
		"keys that are nobody's":            "select count(*) from keys k where k.successor_of = '' and not exists (select from developer_keys d where d.key_hash = k.key_hash)",
		"further keys of none, in force":    "select count(*) from keys k where k.successor_of <> '' and k.expires_at is null and not exists (select from keys i where i.key_hash = k.successor_of)",
		"subscriptions to what a key lacks": "select count(*) from developer_subscriptions s join keys k using (key_hash) where not s.policy_id = any(k.policies)",
		"keys noted with other policies":    "select count(*) from developer_keys d join keys k using (key_hash) where d.policies <> k.policies",
		"policies of keys without a note":   "select count(*) from developer_keys d cross join unnest(d.policies) p where not exists (select from developer_subscriptions s where s.developer_id = d.developer_id and s.policy_id = p)",
		"requests that came to two keys":    "select count(*) from (select request_id from developer_keys where request_id <> '' group by 1 having count(*) > 1) x",
		"clients beyond the limit":          "select greatest(count(*) - 5, 0) from oauth_clients",
		"approved requests without a key":   "select count(*) from key_requests where state = 'approved' and key_hash = ''",
		"keys of requests that are pending": "select count(*) from developer_keys d join key_requests r on r.id = d.request_id where r.state <> 'approved'",
	} {
		if n := b.Count(query); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	wait.Until(t, "all is delivered", func() bool { return b.Count("select count(*) from outbox") == 0 })
	stored := b.Count("select count(*) from keys")
	hashes := 0
	for cursor := ""; ; {
		page, next, err := b.keys.List(t.Context(), cursor, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, hash := range page {
			hashes++
			if b.Count("select count(*) from keys where key_hash = $1", hash) != 1 {
				t.Errorf("the gateways have key %.12s, which is gone", hash)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	if hashes != stored {
		t.Errorf("the gateways have %d keys of %d", hashes, stored)
	}
}

// stormFor is how long it lasts.
const stormFor = 4 * time.Second
