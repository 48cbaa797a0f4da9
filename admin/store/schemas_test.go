package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// graph is an API with a schema of one field, to be fetched every interval
// seconds.
func graph(t testing.TB, id, field string, interval int) *definition.API {
	return parseAPI(t, fmt.Sprintf(`{"api_id":%q,"name":%q,"use_keyless":true,"proxy":{"listen_path":"/%s","target_url":"http://up.example"},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { %s: Int }","schema_sync":{"interval":%d}}}`, id, id, id, field, interval))
}

func update(t testing.TB, s *Store, api *definition.API, fetched bool) {
	t.Helper()
	_, err := s.Publish(t.Context(), by("one"), func(ctx context.Context, c *Change) error {
		c.Fetched(fetched)
		_, err := c.UpdateAPI(ctx, api, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheNewestSchemasOfAnAPIAreKept(t *testing.T) {
	s, url := fresh(t)
	create(t, s, "one", graph(t, "g", "f0", 0))
	first, err := s.Schemas(t.Context(), "one", "g")
	if err != nil || len(first) != 1 || first[0].Source != "upload" || first[0].Author != "ann@one" || first[0].Size != int32(len("type Query { f0: Int }")) {
		t.Fatalf("after the first: %+v, %v", first, err)
	}
	update(t, s, graph(t, "g", "f0", 0), false)
	if list, _ := s.Schemas(t.Context(), "one", "g"); len(list) != 1 {
		t.Errorf("the same schema again makes %d rows", len(list))
	}
	for i := range 30 {
		update(t, s, graph(t, "g", fmt.Sprintf("f%d", i+1), 0), true)
	}
	list, err := s.Schemas(t.Context(), "one", "g")
	if err != nil || len(list) != schemasKept || list[0].Source != "introspection" || list[0].Revision <= list[1].Revision {
		t.Fatalf("%d rows, %v: %+v", len(list), err, list[0])
	}
	if text, err := s.SchemaByHash(t.Context(), "one", "g", list[1].Hash); err != nil || text != "type Query { f29: Int }" || HashSchema(text) != list[1].Hash {
		t.Errorf("second newest: %q, %v", text, err)
	}
	if foreign, _ := s.Schemas(t.Context(), "two", "g"); len(foreign) != 0 {
		t.Errorf("another organisation sees %d", len(foreign))
	}
	_, err = s.Publish(t.Context(), Author{Org: "one", Name: "ann", Source: "rollback"}, func(ctx context.Context, c *Change) error { return c.Rollback(ctx, 1) })
	if err != nil {
		t.Fatal(err)
	}
	if list, err = s.Schemas(t.Context(), "one", "g"); err != nil || len(list) != schemasKept || list[0].Source != "rollback" || list[0].Hash != first[0].Hash {
		t.Errorf("after a rollback: %+v, %v", list, err)
	}
	_, err = s.Publish(t.Context(), by("one"), func(ctx context.Context, c *Change) error { return c.DeleteAPI(ctx, "g", 0, false) })
	if err != nil || one[int](t, url, "select count(*) from api_schemas") != 0 {
		t.Errorf("schemas of a deleted API are left: %v", err)
	}
}

func TestOnlyOneFetchesASchemaThatIsDue(t *testing.T) {
	s, url := fresh(t)
	create(t, s, "one", graph(t, "due", "a", 60), graph(t, "never", "a", 0), graph(t, "later", "a", 86400))
	lease := func() string {
		_, api, _, err := s.LeaseSchemaSync(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return api
	}
	if got := lease(); got != "" {
		t.Fatalf("%s is due although it was just made", got)
	}
	sqlExec(t, url, "update apis set created_at = now() - interval '1 hour'")
	for range 5 {
		if got := contend(t, s); len(got) != 1 || got[0] != "due" {
			t.Fatalf("leased: %v", got)
		}
		if got := lease(); got != "" {
			t.Fatalf("%s was leased twice", got)
		}
		sqlExec(t, url, "update api_schema_syncs set leased_until = 'epoch'") // its holder died
	}
	if err := s.NoteSchemaSync(t.Context(), "one", "due", "no connection"); err != nil {
		t.Fatal(err)
	}
	failed, err := s.SchemaSync(t.Context(), "one", "due")
	if err != nil || failed.Error != "no connection" || !failed.FetchedAt.IsZero() || failed.CheckedAt.IsZero() || failed.FailingSince.IsZero() {
		t.Errorf("after a failure: %+v, %v", failed, err)
	}
	if got := lease(); got != "" {
		t.Errorf("%s is due again at once", got)
	}
	sqlExec(t, url, "update api_schema_syncs set checked_at = now() - interval '61 seconds'")
	if got := lease(); got != "due" {
		t.Errorf("leased %q after the interval", got)
	}
	if err := s.NoteSchemaSync(t.Context(), "one", "due", "still none"); err != nil {
		t.Fatal(err)
	}
	again, err := s.SchemaSync(t.Context(), "one", "due")
	if err != nil || again.Error != "still none" || !again.FailingSince.Equal(failed.FailingSince) {
		t.Errorf("failing since %s, not %s", again.FailingSince, failed.FailingSince)
	}
	if err := s.NoteSchemaSync(t.Context(), "one", "due", ""); err != nil {
		t.Fatal(err)
	}
	if good, err := s.SchemaSync(t.Context(), "one", "due"); err != nil || good.Error != "" || good.FetchedAt.IsZero() {
		t.Errorf("after success: %+v", good)
	}
	update(t, s, graph(t, "due", "a", 0), false)
	sqlExec(t, url, "update api_schema_syncs set checked_at = 'epoch'")
	if got := lease(); got != "" {
		t.Errorf("%s is fetched although the schedule is off", got)
	}
}

// contend lets several ask for a lease at once and returns what they got.
func contend(t *testing.T, s *Store) (got []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, api, found, err := s.LeaseSchemaSync(t.Context(), time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if found {
				got = append(got, api)
			}
		})
	}
	wg.Wait()
	return got
}
