package requests_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAnApprovedRequestComesToAKeyThatIsShownOnce(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	id := b.request(dev, "gold")
	pending := b.call("GET", "/api/portal/requests/"+id, b.viewer, "").want(200)
	pending.says(`"approved":false`, `"state":"pending"`, `"by_user":"`+dev+`"`, `"for_plan":"gold"`, `"key":""`, `"email":"ada@dev.example"`)

	r := b.call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").want(200)
	key := r.text("RawKey")
	if len(r.object()) != 2 || key == "" || r.text("Password") != "" {
		t.Fatalf("approved: %s", r.body)
	}
	s := b.session(key)
	if s.OrgID != b.org || s.Alias != "ada@dev.example" || fmt.Sprint(s.ApplyPolicies) != "[gold]" || string(s.MetaData["developer_id"]) != `"`+dev+`"` {
		t.Errorf("session %+v", s)
	}
	hash := hashOf(key)
	after := b.call("GET", "/api/portal/requests/"+id, b.viewer, "").want(200)
	after.says(`"approved":true`, `"state":"approved"`, `"decided_by":"approver@example.com"`, `"key_id":"`+hash+`"`)
	person := b.call("GET", "/api/portal/developers/"+dev, b.viewer, "").want(200)
	person.says(`"keys":{"`+hash+`":["gold"]}`, `"subscriptions":{"gold":"`+hash+`"}`)
	if n := b.count("select count(*) from deliveries where event = 'key_email' and developer_id = $1", dev); n != 1 {
		t.Errorf("%d letters", n)
	}
	if n := b.count("select count(*) from audit_log where object_kind = 'key_request' and object_id = $1 and action = 'approved'", id); n != 1 {
		t.Errorf("%d entries of the audit log", n)
	}

	again := b.call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").want(409)
	again.says("approved, at version 2")
	if again.header.Get("ETag") != `"2"` {
		t.Errorf("ETag %q", again.header.Get("ETag"))
	}
	for _, one := range []*answer{pending, after, person, again} {
		if strings.Contains(string(one.body), key) {
			t.Errorf("%s shows the key", one.what)
		}
	}
	if b.count("select count(*) from keys where body::text like '%' || $1 || '%'", key)+b.count("select count(*) from audit_log where coalesce(after::text, '') like '%' || $1 || '%'", key) != 0 ||
		strings.Contains(b.log.String(), key) {
		t.Error("the key is kept in clear")
	}
}

func TestRequestsThatNobodyCanApproveStayPending(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	gone, drafted, forInactive := b.request(dev, "gold"), b.request(dev, "silver"), b.request(b.developer("idle"), "silver")
	b.call("DELETE", "/api/portal/policies/gold", b.editor, "").want(200)
	b.call("PUT", "/api/portal/requests/approve/"+gone, b.approver, "").want(409).says(`policy \"gold\" does not exist`)
	b.exec("update developers set inactive = true where email = 'idle@dev.example'")
	b.call("PUT", "/api/portal/requests/approve/"+forInactive, b.approver, "").want(409).says("inactive")
	b.call("PUT", "/api/portal/policies/silver", b.editor, `{"id":"silver","name":"Policy silver","state":"draft","access_rights":{"orders":{"api_id":"orders"}}}`).want(200)
	b.call("PUT", "/api/portal/requests/approve/"+drafted, b.approver, "").want(409).says("state draft")
	for _, id := range []string{gone, drafted, forInactive} {
		b.call("GET", "/api/portal/requests/"+id, b.viewer, "").want(200).says(`"approved":false`)
	}
	if n := b.count("select count(*) from keys") + b.count("select count(*) from developer_keys") + b.count("select count(*) from deliveries where event = 'key_email'"); n != 0 {
		t.Errorf("%d traces", n)
	}
	b.call("PUT", "/api/portal/requests/approve/nothing", b.approver, "").want(404)
}

func TestOfManyApprovalsOfOneRequestOneGetsTheCredential(t *testing.T) {
	b := start(t)
	id := b.request(b.developer("ada"), "gold")
	began := time.Now()
	var ok, conflict, otherwise atomic.Int64
	b.atOnce(200, func(int) {
		r, err := b.try("PUT", "/api/portal/requests/approve/"+id, b.approver, "")
		switch {
		case err == nil && r.status == 200 && r.text("RawKey") != "":
			ok.Add(1)
		case err == nil && r.status == 409 && !strings.Contains(string(r.body), "RawKey"):
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
		if n := b.count("select count(*) from " + table); n != 1 {
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
		r, err := b.try("PUT", "/api/portal/requests/approve/"+ids[i], b.approver, "")
		if err != nil || r.status != 200 {
			t.Errorf("%v %v", r, err)
			return
		}
		keys.Store(r.text("RawKey"), true)
	})
	took := time.Since(began)
	different := 0
	keys.Range(func(any, any) bool { different++; return true })
	t.Logf("%d approvals of %d requests: %d credentials in %s", n, n, different, took)
	if different != n {
		t.Errorf("%d credentials in %s", different, took)
	}
	if rows := b.count("select count(*) from developer_keys d join keys using (key_hash) join key_requests r on r.key_hash = d.key_hash and r.state = 'approved'"); rows != n {
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
	b.call("PUT", "/api/portal/requests/reject/"+id, b.approver, `{"reason":"not '; DROP TABLE keys; -- yet"}`).want(200).says(id)
	b.call("GET", "/api/portal/requests/"+id, b.viewer, "").want(200).says(`"state":"rejected"`, `"reason":"not '; DROP TABLE keys; -- yet"`, `"approved":false`)
	if n := b.count("select count(*) from deliveries where event = 'key_rejected_email' and developer_id = $1", dev); n != 1 {
		t.Errorf("%d letters", n)
	}
	b.call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").want(409).says("rejected, at version 2")
	b.call("PUT", "/api/portal/requests/reject/"+id, b.approver, "").want(409)
	b.call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, "").want(200)
	b.call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, `{"reason":"`+strings.Repeat("x", 2001)+`"}`).want(400).says("reason")
	b.call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, `{"why":1}`).want(400)
}

func TestAUserComesOfABasicEntry(t *testing.T) {
	b := start(t)
	b.entry("gold", `"show":true,"auth_type":"basic"`)
	r := b.call("PUT", "/api/portal/requests/approve/"+b.request(b.developer("ada"), "gold"), b.approver, `{"email":"ada@dev.example"}`).want(200)
	name, plain := r.text("RawKey"), r.text("Password")
	if name == "" || len(plain) < 20 {
		t.Fatalf("approved: %s", r.body)
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
	b.call("PUT", path, b.approver, `{"id":"somebody else"}`).want(400).says("id: must be " + dev)
	b.call("PUT", path, b.approver, `{"inactive":"yes"}`).want(400).says("inactive")
	b.call("PUT", path, b.approver, `{`).want(400)
	b.call("PUT", path, b.approver, fmt.Sprintf(`{"id":%q,"email":"ada@dev.example","fields":{"a":"b"}}`, dev)).want(200)
}
