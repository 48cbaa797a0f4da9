package webhooks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// bench is a portal's webhooks: a database with two organisations and their
// developers, the queue, and the routes over HTTP.
type bench struct {
	*admintest.Database
	admintest.Front
	t       testing.TB
	store   *store.Store
	queue   *delivery.Queue
	service *Service
	letters *letterbox
	key     secret.Key
	log     *testenv.Log
	stop    func() // ends the queue
}

// Callers: role, organisation, id.
const (
	viewer   = "viewer o v"
	approver = "approver o a"
	editor   = "editor o e"
	dev      = "developer o d1"
	dev2     = "developer o d2"
	foreign  = "admin other f"
)

type options struct {
	private bool // private addresses may be called
	public  bool // not so by webhooks of developers
	noKey   bool
	queue   func(*delivery.Options)
	now     func() time.Time
}

func start(t testing.TB, o options) *bench {
	t.Helper()
	b := &bench{t: t, Database: admintest.NewDatabase(t, "webhooks"), log: new(testenv.Log), letters: new(letterbox)}
	b.store = b.Open(store.Options{})
	b.Exec(`insert into orgs (id, name) values ('o', 'o'), ('other', 'other')`)
	b.Exec(`insert into developers (id, org_id, email) values ('d1', 'o', 'one@example.com'), ('d2', 'o', 'two@example.com'), ('x', 'other', 'x@example.com')`)
	key := secret.NewKey()
	if o.noKey {
		key = secret.Key{}
	}
	if o.now == nil {
		o.now = time.Now
	}
	b.key = key
	logger := slog.New(slog.NewTextHandler(b.log, nil))
	q := delivery.Options{Store: b.store, MasterKey: key, Timeout: 15 * time.Second, Poll: 5 * time.Millisecond, Pauses: []time.Duration{5 * time.Millisecond, 5 * time.Millisecond}, Log: logger}
	if o.queue != nil {
		o.queue(&q)
	}
	var err error
	if b.queue, err = delivery.New(q); err != nil {
		t.Fatal(err)
	}
	b.service = New(Deps{
		Store: b.store, Queue: b.queue, Letters: b.letters, MasterKey: key, Outbound: dialguard.Policy{Private: o.private}, Developer: dialguard.Policy{Private: o.private && !o.public}, Now: o.now, Log: logger,
	})
	routes := append(b.service.Routes(), b.queue.Routes()...)
	if _, err := rest.Describe(routes, "test"); err != nil {
		t.Fatal(err)
	}
	b.Front = admintest.Front{T: t, Routes: routes, From: "192.0.2.1"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.queue.Run(ctx) }()
	b.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(b.stop)
	return b
}

// added is what adding a webhook or rotating its secret answers.
type added struct {
	ID   string
	Meta struct{ Secret string }
}

func (b *bench) add(who, path, body string) added {
	b.t.Helper()
	var a added
	b.Call("POST", path, who, body).Want(map[bool]int{true: 200, false: 201}[strings.HasSuffix(path, "/secret")]).Into(&a)
	return a
}

// mine adds a webhook of the first developer for every event.
func (b *bench) mine(url string) added {
	b.t.Helper()
	return b.add(dev, "/api/portal/me/webhooks", fmt.Sprintf(`{"name":"mine","url":%q,"events":["*"]}`, url))
}

func (b *bench) webhook(id string) Webhook {
	b.t.Helper()
	var w Webhook
	b.Call("GET", "/api/portal/webhooks/"+id, viewer, "").Want(200).Into(&w)
	return w
}

// log returns what was sent to a webhook, newest first.
func (b *bench) deliveries(id string) []delivery.Entry {
	b.t.Helper()
	var log delivery.Log
	b.Call("GET", "/api/portal/webhooks/"+id+"/deliveries", viewer, "").Want(200).Into(&log)
	return log.Data
}

func (b *bench) emit(e model.Event) {
	b.t.Helper()
	if err := b.store.InTx(b.t.Context(), func(tx *store.Tx) error { return b.service.Emit(b.t.Context(), tx, e) }); err != nil {
		b.t.Fatal(err)
	}
}

func created() model.Event {
	return model.Event{Org: "o", Developer: "d1", Type: model.KeyCreated, Data: map[string]string{"id": "k1", "text": "<ü>"}}
}

// letterbox keeps letters.
type letterbox struct {
	mu  sync.Mutex
	all []model.Letter
}

func (l *letterbox) Put(_ context.Context, _ *store.Tx, letter model.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, letter)
	return nil
}

func (l *letterbox) letters() []model.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]model.Letter(nil), l.all...)
}

// got is a message that arrived.
type got struct {
	header http.Header
	body   string
}

// receiver is where messages arrive. What it answers, tests say.
type receiver struct {
	answer http.HandlerFunc // nil: 204

	mu  sync.Mutex
	all []got
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.all = append(r.all, got{req.Header.Clone(), string(body)})
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, req)
		return
	}
	w.WriteHeader(204)
}

func (r *receiver) messages() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]got(nil), r.all...)
}
