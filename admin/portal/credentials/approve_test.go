package credentials_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

func TestAnApprovedRequestComesToAKeyThatIsShownOnce(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	id := b.request(dev, "gold")
	pending := b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200)
	pending.Says(`"approved":false`, `"state":"pending"`, `"by_user":"`+dev+`"`, `"for_plan":"gold"`, `"key":""`, `"email":"ada@dev.example"`)

	r := b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").Want(200)
	key := r.Text("RawKey")
	if len(r.Object()) != 2 || key == "" || r.Text("Password") != "" {
		t.Fatalf("approved: %s", r.Body)
	}
	s := b.session(key)
	if s.OrgID != b.org || s.Alias != "ada@dev.example" || fmt.Sprint(s.ApplyPolicies) != "[gold]" || string(s.MetaData["developer_id"]) != `"`+dev+`"` {
		t.Errorf("session %+v", s)
	}
	hash := hashOf(key)
	after := b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200)
	after.Says(`"approved":true`, `"state":"approved"`, `"decided_by":"approver@example.com"`, `"key_id":"`+hash+`"`)
	person := b.Call("GET", "/api/portal/developers/"+dev, b.viewer, "").Want(200)
	person.Says(`"keys":{"`+hash+`":["gold"]}`, `"subscriptions":{"gold":"`+hash+`"}`)
	if n := b.Count("select count(*) from deliveries where event = 'key_email' and developer_id = $1", dev); n != 1 {
		t.Errorf("%d letters", n)
	}
	if n := b.Count("select count(*) from audit_log where object_kind = 'key_request' and object_id = $1 and action = 'approved'", id); n != 1 {
		t.Errorf("%d entries of the audit log", n)
	}

	again := b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").Want(409)
	again.Says("approved, at version 2")
	if again.Header.Get("ETag") != `"2"` {
		t.Errorf("ETag %q", again.Header.Get("ETag"))
	}
	for _, one := range []*admintest.Answer{pending, after, person, again} {
		if strings.Contains(string(one.Body), key) {
			t.Errorf("%s shows the key", one.What)
		}
	}
	if b.Count("select count(*) from keys where body::text like '%' || $1 || '%'", key)+b.Count("select count(*) from audit_log where coalesce(after::text, '') like '%' || $1 || '%'", key) != 0 ||
		strings.Contains(b.log.String(), key) {
		t.Error("the key is kept in clear")
	}
}

func TestRequestsThatNobodyCanApproveStayPending(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	gone, drafted, forInactive := b.request(dev, "gold"), b.request(dev, "silver"), b.request(b.developer("idle"), "silver")
	b.Call("DELETE", "/api/portal/policies/gold", b.editor, "").Want(200)
	b.Call("PUT", "/api/portal/requests/approve/"+gone, b.approver, "").Want(409).Says(`policy \"gold\" does not exist`)
	b.Exec("update developers set inactive = true where email = 'idle@dev.example'")
	b.Call("PUT", "/api/portal/requests/approve/"+forInactive, b.approver, "").Want(409).Says("inactive")
	b.Call("PUT", "/api/portal/policies/silver", b.editor, `{"id":"silver","name":"Policy silver","state":"draft","access_rights":{"orders":{"api_id":"orders"}}}`).Want(200)
	b.Call("PUT", "/api/portal/requests/approve/"+drafted, b.approver, "").Want(409).Says("state draft")
	for _, id := range []string{gone, drafted, forInactive} {
		b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says(`"approved":false`)
	}
	if n := b.Count("select count(*) from keys") + b.Count("select count(*) from developer_keys") + b.Count("select count(*) from deliveries where event = 'key_email'"); n != 0 {
		t.Errorf("%d traces", n)
	}
	b.Call("PUT", "/api/portal/requests/approve/nothing", b.approver, "").Want(404)
}

func TestOfManyApprovalsOfOneRequestOneGetsTheCredential(t *testing.T) {
	b := start(t)
	id := b.request(b.developer("ada"), "gold")
	began := time.Now()
	var ok, conflict, otherwise atomic.Int64
	b.atOnce(200, func(int) {
		r, err := b.Try("PUT", "/api/portal/requests/approve/"+id, b.approver, "")
		switch {
		case err == nil && r.Status == 200 && r.Text("RawKey") != "":
			ok.Add(1)
		case err == nil && r.Status == 409 && !strings.Contains(string(r.Body), "RawKey"):
			conflict.Add(1)
		default:
			otherwise.Add(1)
			t.Errorf("%v %v", r, err)
		}
	})
	took := time.Since(began)
	t.Logf("200 approvals of one request: %d credentials, %d conflicts in %s", ok.Load(), conflict.Load(), took)
	if ok.Load() != 1 || conflict.Load() != 199 {
		t.Errorf("%d credentials, %d conflicts, %d others in %s", ok.Load(), conflict.Load(), otherwise.Load(), took)
	}
	for _, table := range []string{"keys", "developer_keys", "developer_subscriptions", "deliveries where event = 'key_email'"} {
		if n := b.Count("select count(*) from " + table); n != 1 {
			t.Errorf("%d rows of %s", n, table)
		}
	}
}

func TestManyRequestsApprovedAtOnceAllGetTheirs(t *testing.T) {
	b := start(t)
	const n = 200
	ids := make([]string, n)
	var devs []string
	for i := range 10 {
		devs = append(devs, b.developer(fmt.Sprintf("dev%d", i)))
	}
	for i := range ids {
		ids[i] = b.request(devs[i%len(devs)], []string{"gold", "silver"}[i%2])
	}
	var keys sync.Map
	began := time.Now()
	b.atOnce(n, func(i int) {
		r, err := b.Try("PUT", "/api/portal/requests/approve/"+ids[i], b.approver, "")
		if err != nil || r.Status != 200 {
			t.Errorf("%v %v", r, err)
			return
		}
		keys.Store(r.Text("RawKey"), true)
	})
	took := time.Since(began)
	different := 0
	keys.Range(func(any, any) bool { different++; return true })
	t.Logf("%d approvals of %d requests: %d credentials in %s", n, n, different, took)
	if different != n {
		t.Errorf("%d credentials in %s", different, took)
	}
	if rows := b.Count("select count(*) from developer_keys d join keys using (key_hash) join key_requests r on r.key_hash = d.key_hash and r.state = 'approved'"); rows != n {
		t.Errorf("%d keys with their requests", rows)
	}
}

// atOnce does something n times at once.
func (b *bench) atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-gate
			do(i)
		})
	}
	close(gate)
	all.Wait()
}

func TestARejectedRequestEndsWithItsReason(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	id := b.request(dev, "gold")
	b.Call("PUT", "/api/portal/requests/reject/"+id, b.approver, `{"reason":"not '; DROP TABLE keys; -- yet"}`).Want(200).Says(id)
	b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says(`"state":"rejected"`, `"reason":"not '; DROP TABLE keys; -- yet"`, `"approved":false`)
	if n := b.Count("select count(*) from deliveries where event = 'key_rejected_email' and developer_id = $1", dev); n != 1 {
		t.Errorf("%d letters", n)
	}
	b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").Want(409).Says("rejected, at version 2")
	b.Call("PUT", "/api/portal/requests/reject/"+id, b.approver, "").Want(409)
	b.Call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, "").Want(200)
	b.Call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, `{"reason":"`+strings.Repeat("x", 2001)+`"}`).Want(400).Says("reason")
	b.Call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, `{"why":1}`).Want(400)
}

func TestAUserComesOfABasicEntry(t *testing.T) {
	b := start(t)
	b.entry("gold", `"show":true,"auth_type":"basic"`)
	r := b.Call("PUT", "/api/portal/requests/approve/"+b.request(b.developer("ada"), "gold"), b.approver, `{"email":"ada@dev.example"}`).Want(200)
	name, plain := r.Text("RawKey"), r.Text("Password")
	if name == "" || len(plain) < 20 {
		t.Fatalf("approved: %s", r.Body)
	}
	s := b.session(b.org + name)
	if !s.HasPassword() || s.BasicAuth.Password == plain || s.Alias != name {
		t.Errorf("session %+v", s)
	}
	if ok, err := keyOptions().Passwords.Verify(t.Context(), s.BasicAuth.Password, []byte(plain)); err != nil || !ok {
		t.Errorf("the password is not right: %v", err)
	}
}

func TestAnApprovalMayComeWithTheDeveloper(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	id := b.request(dev, "gold")
	path := "/api/portal/requests/approve/" + id
	b.Call("PUT", path, b.approver, `{"id":"somebody else"}`).Want(400).Says("id: must be " + dev)
	b.Call("PUT", path, b.approver, `{"inactive":"yes"}`).Want(400).Says("inactive")
	b.Call("PUT", path, b.approver, `{`).Want(400)
	b.Call("PUT", path, b.approver, fmt.Sprintf(`{"id":%q,"email":"ada@dev.example","fields":{"a":"b"}}`, dev)).Want(200)
}
