package system

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

// office is a portal's operators' side on a database that tests look into.
type office struct {
	portal
	t    *testing.T
	conn *pgx.Conn
}

// newOffice opens a shop whose plan developers ask for.
func newOffice(t *testing.T, r *rig.Rest, database, origin string) *office {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // nothing was begun on it
	o := &office{portal{r}, t, conn}
	o.Do("POST", "/api/apis", rig.APIDef("shop", origin, false))
	o.Do("POST", "/api/portal/policies", object{"id": "plan", "name": "plan", "rate": 1000, "per": 1, "access_rights": rig.AccessTo("shop")})
	return o
}

// ask makes n developers, each of whom asks for the plan, and returns the requests
// and the addresses of those who ask.
func (o *office) ask(name string, n int) (ids []string, emails map[string]string) {
	o.t.Helper()
	emails = make(map[string]string, n)
	for i := range n {
		email := fmt.Sprintf("%s-%d@dev.example", name, i)
		var who, made struct{ Message string }
		o.Do("POST", "/api/portal/developers", object{"email": email}).Into(o.t, &who)
		o.Do("POST", "/api/portal/requests", object{"by_user": who.Message, "for_plan": "plan", "version": "v2"}).Into(o.t, &made)
		ids, emails[made.Message] = append(ids, made.Message), email
	}
	return ids, emails
}

// parts are what an approval comes to, each counted for one request.
var parts = map[string]string{
	"the state":        "SELECT count(*) FROM key_requests WHERE id = $1 AND state = 'approved' AND decided_at IS NOT NULL AND key_hash <> ''",
	"the key":          "SELECT count(*) FROM keys k JOIN key_requests r ON r.key_hash = k.key_hash WHERE r.id = $1",
	"whose it is":      "SELECT count(*) FROM developer_keys WHERE request_id = $1",
	"the subscription": "SELECT count(*) FROM developer_subscriptions JOIN developer_keys USING (key_hash) WHERE request_id = $1",
	"the letter":       "SELECT count(*) FROM deliveries l JOIN key_requests r USING (developer_id) WHERE r.id = $1 AND l.event = 'key_email'",
	"the message":      "SELECT count(*) FROM deliveries WHERE event = 'key_request_event.approved' AND convert_from(payload, 'UTF8')::jsonb -> 'data' ->> 'id' = $1",
	"the audit log":    "SELECT count(*) FROM audit_log WHERE object_kind = 'key_request' AND object_id = $1 AND action = 'approved'",
}

// approved tells whether a request is, and fails unless all parts of it are there,
// or none.
func (o *office) approved(id string) bool {
	o.t.Helper()
	count := func(query string) (n int) {
		if err := o.conn.QueryRow(o.t.Context(), query, id).Scan(&n); err != nil {
			o.t.Fatal(err)
		}
		return n
	}
	n := count(parts["the state"])
	for what, query := range parts {
		if got := count(query); got != n {
			o.t.Errorf("request %s: of %s there are %d, of its state %d", id, what, got, n)
		}
	}
	return n == 1
}

// waiting is how many letters and messages are not sent yet.
func (o *office) waiting() (n int) {
	o.t.Helper()
	if err := o.conn.QueryRow(o.t.Context(), "SELECT count(*) FROM deliveries WHERE state = 'pending'").Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}

// mailedKey reads the key out of the letter about an approval.
func (o *office) mailedKey(email string) string {
	o.t.Helper()
	letter := o.LetterTo(email, "key_email")
	key := regexp.MustCompile(`slk_\w+`).FindString(letter)
	if key == "" {
		o.t.Fatalf("no key in the letter: %s", letter)
	}
	return rig.Plant(key)
}

// An admin that is killed in the middle of approvals leaves each whole or
// untouched. What was answered is there; a key whose answer was lost is in the
// letter; and every one of them works at the gateways.
func TestAnAdminKilledWhileItApprovesLeavesAllOrNothing(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	s := newSplit(t, 2, database)
	o := newOffice(t, s.rest, database, s.origin)
	l := &listener{address: rig.FreeAddress(t)}
	l.listen(t)
	o.Do("POST", "/api/portal/webhooks", object{"name": "ops", "url": "http://" + l.address + "/", "events": []string{"key_request_event.approved"}})
	s.everywhere("the plan", "/shop/x", s.rest.NewKey(object{"apply_policies": []string{"plan"}}), status(200))

	var all []string
	unanswered := make(map[string]string) // the addresses of those whose requests were approved without an answer, by request
	for round, after := range []int64{1, 6, 15} {
		ids, emails := o.ask(fmt.Sprintf("r%d", round), 30)
		answered := o.approveUntilKilled(s.admin, ids, after)
		s.admin.StartReady()
		done := 0
		for _, id := range ids {
			key, known := answered[id]
			switch approved := o.approved(id); {
			case known && !approved:
				t.Errorf("round %d: request %s was answered and is not approved", round, id)
				continue
			case approved:
				done++
				o.Expect(409, "PUT", "/api/portal/requests/approve/"+id, nil)
				if !known {
					unanswered[id] = emails[id]
					continue
				}
			default:
				key = o.approve(id).RawKey
				if !o.approved(id) {
					t.Errorf("round %d: request %s is not approved after the crash", round, id)
				}
			}
			s.everywhere("the key", "/shop/x", key, status(200))
		}
		t.Logf("round %d: killed after %d answers; %d of %d were approved, %d had answers", round, after, done, len(ids), len(answered))
		all = append(all, ids...)
	}
	// What was on its way at a kill is sent once nobody can be sending it any more.
	rig.Within(t, 2*rig.Patience, "all letters and messages", func() error {
		if n := o.waiting(); n > 0 {
			return fmt.Errorf("%d wait", n)
		}
		return nil
	})
	for _, email := range unanswered {
		s.everywhere("the key of the letter", "/shop/x", o.mailedKey(email), status(200))
	}
	for _, id := range all {
		if !slices.ContainsFunc(l.messages(), func(m heard) bool { return strings.Contains(m.body, id) }) {
			t.Errorf("no message came about request %s", id)
		}
	}
	var keys, audits int
	if err := o.conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM developer_keys), (SELECT count(*) FROM audit_log WHERE object_kind = 'key_request' AND action = 'approved')").Scan(&keys, &audits); err != nil {
		t.Fatal(err)
	}
	if keys != len(all) || audits != len(all) {
		t.Errorf("%d requests came to %d keys by %d approvals", len(all), keys, audits)
	}
	t.Logf("%d approvals were committed and not answered; their keys came by letter", len(unanswered))
}

// approveUntilKilled approves requests, ten at a time, kills the admin once so
// many were answered, and returns the keys that were.
func (o *office) approveUntilKilled(admin *rig.Server, ids []string, after int64) map[string]string {
	o.t.Helper()
	var mu sync.Mutex
	answered := make(map[string]string)
	var next, count atomic.Int64
	var work sync.WaitGroup
	killed, enough := make(chan struct{}), make(chan struct{})
	for range 10 {
		work.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= len(ids) {
					return
				}
				got, err := o.Try("PUT", "/api/portal/requests/approve/"+ids[i], nil)
				if err != nil || got.Status != 200 {
					select {
					case <-killed:
					default:
						o.t.Errorf("before the kill: %v %s", err, got)
					}
					return
				}
				var c credential
				got.Into(o.t, &c)
				mu.Lock()
				answered[ids[i]] = rig.Plant(c.RawKey)
				mu.Unlock()
				if count.Add(1) == after {
					close(enough)
				}
			}
		})
	}
	<-enough
	close(killed)
	admin.Kill()
	work.Wait()
	return answered
}

// slowReceiver notes which messages are on their way at the same time.
type slowReceiver struct {
	mu      sync.Mutex
	open    map[string]int // by webhook-id
	arrived map[string]int
	most    int // of different ones at once
	twice   []string
	hold    time.Duration
}

func (r *slowReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body) // what it says does not matter here
	id := req.Header.Get("Webhook-Id")
	r.mu.Lock()
	r.open[id]++
	if r.arrived[id]++; r.open[id] > 1 {
		r.twice = append(r.twice, id)
	}
	r.most = max(r.most, len(r.open))
	r.mu.Unlock()
	select {
	case <-time.After(r.hold): // long enough for the other to take it too, if it could
	case <-req.Context().Done(): // the sender is gone
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[id]--; r.open[id] == 0 {
		delete(r.open, id)
	}
	w.WriteHeader(http.StatusNoContent)
}

// Two admins on one database send every message, and none of them at the same
// time; as nobody dies, none twice.
func TestTwoAdminsSendNoMessageTwice(t *testing.T) {
	t.Parallel()
	database, store := testenv.Postgres(t), testenv.Valkey(t)
	shared := settings{
		"database.url": database, "valkey.url": "redis://" + store.Addr, "valkey.timeout": "5s", "gateway.token": splitToken,
		"events.private_targets": "allow", "admin.master_key": secret.NewKey().Text().Reveal(),
	}
	rig.Plant(shared["admin.master_key"])
	first, second := rig.NewAdmin(t, shared).StartReady(), rig.NewAdmin(t, shared).StartReady()
	admin := first.Rest()
	other := rig.NewRest(t, second.Admin, admin.Key)
	o := newOffice(t, admin, database, "http://127.0.0.1:9")
	receiver := &slowReceiver{open: map[string]int{}, arrived: map[string]int{}, hold: 200 * time.Millisecond}
	listening := httptest.NewServer(receiver)
	t.Cleanup(listening.Close)
	o.Do("POST", "/api/portal/webhooks", object{"name": "ops", "url": listening.URL, "events": []string{"*"}})

	const n = 30
	ids, emails := o.ask("two", n)
	var work sync.WaitGroup
	results := make([][2]rig.Answer, n)
	for i, id := range ids {
		for j, r := range []*rig.Rest{admin, other} { // both at once
			work.Go(func() {
				got, err := r.Try("PUT", "/api/portal/requests/approve/"+id, nil)
				if err != nil {
					t.Error(err)
				}
				results[i][j] = got
			})
		}
	}
	work.Wait()
	for i, pair := range results {
		if a, b := pair[0].Status, pair[1].Status; a+b != 200+409 || max(a, b) != 409 {
			t.Errorf("request %s, approved at both admins: %s and %s", ids[i], pair[0], pair[1])
		}
		if !o.approved(ids[i]) {
			t.Errorf("request %s is not approved", ids[i])
		}
	}
	const want = 3 * n // submitted, approved, key created
	rig.Eventually(t, "every message", func() error {
		pending := o.waiting()
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		if receiver.twice != nil {
			t.Fatalf("sent while they were on their way already: %v", receiver.twice)
		}
		if len(receiver.arrived) != want || pending > 0 {
			return fmt.Errorf("%d of %d arrived, %d wait", len(receiver.arrived), want, pending)
		}
		return nil
	})
	for id, email := range emails { // the letters are there once, and either admin shows them
		var list struct{ Data []struct{ Kind string } }
		other.Do("GET", "/api/portal/mailbox?q="+email, nil).Into(t, &list)
		if len(list.Data) != 1 || list.Data[0].Kind != "key_email" {
			t.Errorf("letters about request %s: %+v", id, list.Data)
		}
	}
	for _, one := range []*rig.Server{first, second} {
		if code := one.Stop(); code != 0 {
			t.Errorf("%s stopped with code %d, want 0", one, code)
		}
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	for id, times := range receiver.arrived {
		if times != 1 {
			t.Errorf("message %s was sent %d times", id, times)
		}
	}
	t.Logf("%d messages, at most %d of them at once", len(receiver.arrived), receiver.most)
}
