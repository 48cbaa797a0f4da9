package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/guard"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv/portaltest"
)

// bench is a portal's webhooks: a database with two organisations and their
// developers, the queue, and the routes over HTTP.
type bench struct {
	*portaltest.Database
	t       testing.TB
	store   *store.Store
	queue   *delivery.Queue
	service *Service
	letters *letterbox
	log     *portaltest.Log
	url     string
	stop    func() // ends the queue
}

// Callers, as the header X-Who names them: role, organisation, id.
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
	noKey   bool
	queue   func(*delivery.Options)
	now     func() time.Time
}

func start(t testing.TB, o options) *bench {
	t.Helper()
	b := &bench{t: t, Database: portaltest.NewDatabase(t, "webhooks"), log: new(portaltest.Log), letters: new(letterbox)}
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
		Store: b.store, Queue: b.queue, Letters: b.letters, MasterKey: key, Outbound: guard.Policy{Private: o.private}, Now: o.now, Log: logger,
	})
	b.serve()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.queue.Run(ctx) }()
	b.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(b.stop)
	return b
}

// serve answers for the routes, and takes callers at their word.
func (b *bench) serve() {
	b.t.Helper()
	routes := append(b.service.Routes(), b.queue.Routes()...)
	if _, err := rest.Describe(routes, "test"); err != nil {
		b.t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { answer(ctx, routes) }}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	b.t.Cleanup(func() {
		_ = server.Shutdown()
		<-served
	})
	b.url = "http://" + ln.Addr().String()
}

func answer(http *fasthttp.RequestCtx, routes []rest.Route) {
	for i := range routes {
		params, ok := match(routes[i].Path, string(http.Path()))
		if !ok || routes[i].Method != string(http.Method()) {
			continue
		}
		for name, value := range params {
			http.SetUserValue(name, value)
		}
		c := &rest.Call{HTTP: http, Route: &routes[i], PageSize: 10}
		var role string
		_, _ = fmt.Sscan(string(http.Request.Header.Peek("X-Who")), &role, &c.Who.Org, &c.Who.ID)
		c.Who.Role, c.Who.Kind, c.Who.Name = rest.Role(role), "user", c.Who.ID+"@example.com"
		if role == "developer" {
			c.Who.Kind = "developer"
		}
		var reply any
		err := error(rest.Refuse(403, "access denied"))
		if routes[i].Allows(c.Who.Role) {
			reply, err = routes[i].Handle(context.Background(), c)
		}
		if err == nil {
			err = c.Write(reply)
		}
		if err != nil {
			fault, _ := rest.FaultOf(err)
			if fault.Status == 500 {
				fault.Message += ": " + err.Error()
			}
			fault.Write(http)
		}
		return
	}
	http.SetStatusCode(404)
}

// match tells whether a path is one of a route, static parts first.
func match(route, path string) (map[string]string, bool) {
	want, have := strings.Split(route, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	params := map[string]string{}
	for i := range want {
		if name, ok := strings.CutPrefix(want[i], "{"); ok {
			params[strings.TrimSuffix(name, "}")] = have[i]
		} else if want[i] != have[i] {
			return nil, false
		}
	}
	return params, true
}

// reply is an answer, read to the end.
type reply struct {
	t      testing.TB
	what   string
	status int
	etag   string
	body   string
}

func (b *bench) call(method, path, who, body string, headers ...string) *reply {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-Who", who)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return &reply{b.t, who + ": " + method + " " + path + " " + body, resp.StatusCode, resp.Header.Get("ETag"), string(read)}
}

func (r *reply) want(status int, parts ...string) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: %d %s, want %d", r.what, r.status, r.body, status)
	}
	for _, part := range parts {
		if !strings.Contains(r.body, part) {
			r.t.Errorf("%s: %s is not in %s", r.what, part, r.body)
		}
	}
	return r
}

func (r *reply) into(v any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		r.t.Fatalf("%s: %v in %s", r.what, err, r.body)
	}
}

// added is what adding a webhook or rotating its secret answers.
type added struct {
	ID   string
	Meta struct{ Secret string }
}

func (b *bench) add(who, path, body string) added {
	b.t.Helper()
	var a added
	b.call("POST", path, who, body).want(200).into(&a)
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
	b.call("GET", "/api/portal/webhooks/"+id, viewer, "").want(200).into(&w)
	return w
}

// log returns what was sent to a webhook, newest first.
func (b *bench) deliveries(id string) []delivery.Entry {
	b.t.Helper()
	var log delivery.Log
	b.call("GET", "/api/portal/webhooks/"+id+"/deliveries", viewer, "").want(200).into(&log)
	return log.Data
}

func (b *bench) emit(e record.Event) {
	b.t.Helper()
	if err := b.store.InTx(b.t.Context(), func(tx *store.Tx) error { return b.service.Emit(b.t.Context(), tx, e) }); err != nil {
		b.t.Fatal(err)
	}
}

func created() record.Event {
	return record.Event{Org: "o", Developer: "d1", Type: record.KeyCreated, Data: map[string]string{"id": "k1", "text": "<ü>"}}
}

// letterbox keeps letters.
type letterbox struct {
	mu  sync.Mutex
	all []record.Letter
}

func (l *letterbox) Put(_ context.Context, _ *store.Tx, letter record.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, letter)
	return nil
}

func (l *letterbox) letters() []record.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]record.Letter(nil), l.all...)
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
