package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// Variables that make the test binary another process: an admin on a database, or
// one that approves a request and dies at a point of it.
const (
	childOn   = "SLUICE_TEST_REQUESTS_ON"
	childDies = "SLUICE_TEST_REQUESTS_DIES_AT" // "": it serves
	childOf   = "SLUICE_TEST_REQUESTS_APPROVES"
)

func TestMain(m *testing.M) {
	dsn := os.Getenv(childOn)
	if dsn == "" {
		os.Exit(m.Run())
	}
	run := serveChild
	if os.Getenv(childDies) != "" {
		run = approveAndDie
	}
	if err := run(dsn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveChild serves until the process is killed, and says where.
func serveChild(dsn string) error {
	st, err := store.Open(context.Background(), store.Options{URL: dsn, MaxConns: 10})
	if err != nil {
		return err
	}
	server, err := admin.New(admin.Deps{
		Store: st, Keys: keystore.NewMemory(), Counters: counter.NewMemory(nil), KeyOptions: keyOptions(), MasterKey: aMasterKey(), LoginRate: 1000,
	})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + ln.Addr().String())
	return server.Serve(ln)
}

// points are called at the points of an approval.
type points struct {
	at      func(point string) error
	letters credentials.Letters
}

// Put implements credentials.Letters.
func (p points) Put(ctx context.Context, tx *store.Tx, l model.Letter) error {
	if err := p.at("before the letter"); err != nil {
		return err
	}
	if err := p.letters.Put(ctx, tx, l); err != nil {
		return err
	}
	return p.at("after the letter")
}

// Emit implements credentials.Events.
func (p points) Emit(_ context.Context, _ *store.Tx, e model.Event) error { return p.at(e.Type) }

// approver is what approves, with points in it.
func approver(st *store.Store, at func(string) error) (*credentials.Requests, error) {
	log := slog.New(slog.DiscardHandler)
	queue, err := delivery.New(delivery.Options{Store: st, MasterKey: aMasterKey(), Log: log})
	if err != nil {
		return nil, err
	}
	offers := catalogue.New(st, nil, nil)
	p := points{at: at, letters: delivery.NewLetters(queue, offers, "http://portal.example")}
	keeper := credentials.NewKeys(credentials.KeyDeps{
		Store: st, Counters: counter.NewMemory(nil), Options: keyOptions(), Events: p, Now: time.Now, Log: log,
		Deliver: func(string) { _ = p.at("after the commit") }, // it dies, or goes on
	})
	return credentials.NewRequests(credentials.RequestDeps{Store: st, Keys: keeper, Catalogue: offers, Letters: p, Events: p, MasterKey: aMasterKey(), Log: log}), nil
}

func approveAndDie(dsn string) error {
	ctx := context.Background()
	st, err := store.Open(ctx, store.Options{URL: dsn, MaxConns: 5})
	if err != nil {
		return err
	}
	s, err := approver(st, func(point string) error {
		if point == os.Getenv(childDies) {
			return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("still alive"))
		}
		return nil
	})
	if err != nil {
		return err
	}
	org, id, _ := strings.Cut(os.Getenv(childOf), " ")
	row, err := st.KeyRequestByID(ctx, org, id)
	if err != nil {
		return err
	}
	if _, err = s.Approve(ctx, store.Author{Org: org, Name: "child", Kind: "user"}, &row); err != nil {
		return err
	}
	return errors.New("the point was not reached")
}

// traces are what an approval leaves, each 1 or 0 for one request.
var traces = map[string]string{
	"the state":         "select count(*) from key_requests where id = $1 and state = 'approved'",
	"the key":           "select count(*) from keys k join key_requests r on r.key_hash = k.key_hash where r.id = $1",
	"whose it is":       "select count(*) from developer_keys where request_id = $1",
	"the subscription":  "select count(*) from developer_subscriptions s join developer_keys d using (key_hash) where d.request_id = $1",
	"the audit log":     "select count(*) from audit_log where object_kind = 'key_request' and object_id = $1 and action = 'approved'",
	"the key's entry":   "select count(*) from audit_log a join developer_keys d on a.object_id = d.key_hash where d.request_id = $1 and a.action = 'created'",
	"the letter":        "select count(*) from deliveries l join key_requests r on l.developer_id = r.developer_id where r.id = $1 and l.event = 'key_email'",
	"the key's meta":    "select count(*) from keys where body -> 'meta_data' ->> 'key_request_id' = $1",
	"what has happened": "select count(*) from key_requests where id = $1 and decided_at is not null and key_hash <> ''",
}

// trace reports whether a request, the only one of its developer, was approved: all
// of it, or nothing.
func (b *bench) trace(id string) (approved bool) {
	b.t.Helper()
	n := b.Count(traces["the state"], id)
	for what, query := range traces {
		if got := b.Count(query, id); got != n {
			b.t.Errorf("request %s: %s is %d, the state %d", id, what, got, n)
		}
	}
	return n == 1
}

func TestAProcessKilledWhileItApprovesLeavesAllOrNothing(t *testing.T) {
	b := start(t)
	for i, c := range []struct {
		point string
		done  bool
	}{
		{model.KeyCreated, false}, {"before the letter", false}, {"after the letter", false}, {model.RequestApproved, false}, {"after the commit", true},
	} {
		id := b.request(b.developer(fmt.Sprintf("dev%d", i)), "gold")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childOn+"="+b.DSN, childDies+"="+c.point, childOf+"="+b.org+" "+id)
		out, err := cmd.CombinedOutput()
		exit, _ := errors.AsType[*exec.ExitError](err)
		if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the child ended with %v: %s", c.point, err, out)
		}
		if b.trace(id) != c.done {
			t.Errorf("killed at %q: approved %v", c.point, !c.done)
		}
		r := b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "")
		if want := map[bool]int{false: 200, true: 409}[c.done]; r.Status != want {
			t.Errorf("after %q: %d %s, want %d", c.point, r.Status, r.Body, want)
		}
		if !b.trace(id) {
			t.Errorf("after %q: not approved", c.point)
		}
	}
}

func TestAProcessKilledUnderManyApprovalsLosesNoneThatItAnswered(t *testing.T) {
	b := start(t)
	var ids []string
	for i := range 60 {
		dev := fmt.Sprintf("d%d", i)
		b.Exec("insert into developers (id, org_id, email) values ($1, $2, $3)", dev, b.org, dev+"@dev.example")
		ids = append(ids, b.request(dev, "gold"))
	}
	url, kill := b.child()
	var answered sync.Map
	var count atomic.Int64
	b.atOnce(len(ids), func(i int) {
		r, err := b.At(url).Try("PUT", "/api/portal/requests/approve/"+ids[i], b.approver, "")
		if err != nil {
			return // killed
		}
		if r.Status == 200 {
			answered.Store(ids[i], r.Text("RawKey"))
		}
		if count.Add(1) == 5 {
			kill() // while the others' calls are under way
		}
	})
	kill()
	approved := 0
	for _, id := range ids {
		done := b.trace(id)
		if done {
			approved++
		}
		if key, ok := answered.Load(id); ok {
			if !done || b.Count("select count(*) from keys where key_hash = $1", hashOf(key.(string))) != 1 {
				t.Errorf("request %s was answered and is not there", id)
			}
		}
		want := 200
		if done {
			want = 409
		}
		b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").Want(want)
		b.trace(id)
	}
	t.Logf("%d of %d were approved when the process was killed", approved, len(ids))
	if n := b.Count("select count(*) from keys"); n != len(ids) {
		t.Errorf("%d keys for %d requests", n, len(ids))
	}
}

// child starts an admin in a process of its own.
func (b *bench) child() (url string, kill func()) {
	b.t.Helper()
	return testenv.Child(b.t, childOn+"="+b.DSN)
}

func TestAnApprovalWhoseLetterOrEventCannotBeQueuedDidNotHappen(t *testing.T) {
	b := start(t)
	st, err := store.Open(t.Context(), store.Options{URL: b.DSN, MaxConns: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	for i, point := range []string{model.KeyCreated, "before the letter", "after the letter", model.RequestApproved} {
		id := b.request(b.developer(fmt.Sprintf("dev%d", i)), "gold")
		broken := errors.New("planted")
		s, err := approver(st, func(at string) error {
			if at == point {
				return broken
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		row, err := st.KeyRequestByID(t.Context(), b.org, id)
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Approve(t.Context(), store.Author{Org: b.org, Name: "test", Kind: "user"}, &row)
		if !errors.Is(err, broken) || made.RawKey != "" {
			t.Errorf("%s: %v", point, err)
		}
		if b.trace(id) {
			t.Errorf("%s: approved all the same", point)
		}
		b.approve(id)
	}
}

func TestTheDatabaseGoesAwayInTheMiddleOfAnApproval(t *testing.T) {
	b := start(t)
	id := b.request(b.developer("ada"), "gold")
	name := b.Text("select current_database()")
	// Somebody holds the policy's row, so that the approval waits with half of its
	// work behind it.
	locker, err := pgx.Connect(t.Context(), b.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close(context.Background())
	if _, err := locker.Exec(t.Context(), "begin; set local application_name = 'locker'; select 1 from policies where id = 'gold' for update"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan *admintest.Answer, 1)
	go func() {
		r, err := b.Try("PUT", "/api/portal/requests/approve/"+id, b.approver, "")
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	root, err := pgx.Connect(t.Context(), b.DSN+" dbname=postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close(context.Background())
	wait.Until(t, "the approval waits", func() bool {
		var n int
		err := root.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'", name).Scan(&n)
		return err == nil && n > 0
	})
	for _, statement := range []string{
		"alter database " + name + " allow_connections false",
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "' and application_name = 'sluice'",
	} {
		if _, err := root.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	r := (<-answered).Want(503)
	if strings.Contains(string(r.Body), "RawKey") || r.Header.Get("Retry-After") == "" {
		t.Errorf("answered %s", r.Body)
	}
	for _, c := range [][2]string{
		{"GET", "/api/portal/requests"},
		{"GET", "/api/portal/requests/" + id},
		{"PUT", "/api/portal/requests/approve/" + id},
		{"PUT", "/api/portal/requests/reject/" + id},
		{"DELETE", "/api/portal/requests/" + id},
		{"GET", "/api/portal/developers/x/keys"},
	} {
		b.Call(c[0], c[1], b.approver, "").Want(503)
	}
	if _, err := root.Exec(t.Context(), "alter database "+name+" allow_connections true"); err != nil {
		t.Fatal(err)
	}
	if _, err := locker.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if b.trace(id) {
		t.Error("the approval happened")
	}
	wait.Until(t, "the request can be approved", func() bool {
		r, err := b.Try("PUT", "/api/portal/requests/approve/"+id, b.approver, "")
		return err == nil && r.Status == 200
	})
	b.trace(id)
}
