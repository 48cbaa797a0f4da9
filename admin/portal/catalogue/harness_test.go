package catalogue

import (
	"context"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// bench is a service on a database with two organisations. The first has the APIs
// orders and stock and the policies gold, silver and draft, the second the API
// theirs and the policy foreign.
type bench struct {
	*admintest.Database
	admintest.Front
	t       testing.TB
	store   *store.Store
	service *Service
}

func start(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, Database: admintest.NewDatabase(t, "catalogue")}
	b.store = b.Open(store.Options{MaxConns: 12})
	b.Exec("insert into orgs (id, name, created_at) values ('one', 'one', 'epoch'), ('two', 'two', now())")
	docs := NewDocuments(b.store)
	b.service = New(b.store, func(_ context.Context, credential []byte) (rest.Principal, error) {
		return developer(string(credential))
	}, docs)
	b.Front = admintest.Front{
		T: t, Routes: append(b.service.Routes(), docs.Routes()...), From: "192.0.2.1",
		Identify: func(_ context.Context, session string) (rest.Principal, error) {
			who, _ := developer(session) // nobody's is nobody, also for the routes that anyone may call
			return who, nil
		},
	}
	b.api("one", `{"api_id":"orders","name":"Orders","proxy":{"listen_path":"/orders/","target_url":"http://10.0.0.1:8080/v1","strip_listen_path":true}}`)
	b.api("one", `{"api_id":"stock","name":"Stock","domain":"stock.example.com","proxy":{"listen_path":"/stock","target_url":"http://up.internal"}}`)
	b.api("two", `{"api_id":"theirs","name":"Theirs","proxy":{"listen_path":"/theirs","target_url":"http://up.internal"}}`)
	b.policy("one", `{"id":"gold","name":"Gold","rate":10,"per":60,"quota_max":100000,"quota_renewal_rate":86400,"max_query_depth":3,"access_rights":{"orders":{"limit":{"rate":5,"per":1}}}}`)
	b.policy("one", `{"id":"silver","name":"Silver"}`)
	b.policy("one", `{"id":"depot","name":"Depot","access_rights":{"stock":{}}}`)
	b.policy("one", `{"id":"draft","name":"Draft","state":"draft"}`)
	b.policy("two", `{"id":"foreign","name":"Foreign"}`)
	return b
}

func (b *bench) api(org, body string) {
	b.t.Helper()
	api, err := definition.ParseAPI([]byte(body))
	if err != nil {
		b.t.Fatal(err)
	}
	b.publish(org, func(ctx context.Context, c *store.Change) error { return c.CreateAPI(ctx, api) })
}

func (b *bench) policy(org, body string) {
	b.t.Helper()
	p, err := definition.ParsePolicy([]byte(body))
	if err != nil {
		b.t.Fatal(err)
	}
	b.publish(org, func(ctx context.Context, c *store.Change) error { return c.CreatePolicy(ctx, p) })
}

func (b *bench) publish(org string, change func(context.Context, *store.Change) error) {
	b.t.Helper()
	if _, err := b.store.Publish(b.t.Context(), store.Author{Org: org, Name: "test", Kind: "user", Source: "api"}, change); err != nil {
		b.t.Fatal(err)
	}
}

// developer knows one developer of each organisation.
func developer(credential string) (rest.Principal, error) {
	org, found := strings.CutPrefix(credential, "slp_")
	if !found || org != "one" && org != "two" {
		return rest.Principal{}, store.ErrNotFound
	}
	return rest.Principal{Org: org, ID: "d", Name: "d@" + org, Kind: "developer", Role: rest.Developer}, nil
}
