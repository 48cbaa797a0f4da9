package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/usage"
)

func sampled(n int, org, api, key string, at time.Time) usage.Sample {
	return usage.Sample{ID: fmt.Sprint("s", n), At: at, Org: org, API: api, Key: key, Method: "GET", URL: "/x", Status: 200}
}

// ids returns the samples of a query.
func ids(t *testing.T, st *store.Store, q SampleQuery) (found []string) {
	t.Helper()
	if q.Org == "" {
		q.Org = "one"
	}
	if q.Most == 0 {
		q.Most = 100_000
	}
	err := EachSample(t.Context(), st, &q, func(s *usage.Sample) error {
		found = append(found, s.ID)
		return nil
	})
	n, counted := CountSamples(t.Context(), st, &q)
	if err = errors.Join(err, counted); err != nil || n != len(found) {
		t.Fatalf("%d samples, %d counted, %v", len(found), n, err)
	}
	return found
}

// A batch that comes again adds nothing, and the newest of each organisation stay.
func TestTheNewestSamplesOfEachOrganisationStay(t *testing.T) {
	st, _ := fresh(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	n := 0
	for sequence := range int64(4) {
		b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: sequence + 1}
		for range 100 {
			b.Samples = append(b.Samples, sampled(n, "one", "a", "k", now.Add(time.Duration(n-1000)*time.Second)))
			n++
		}
		b.Samples = append(b.Samples, sampled(9000+int(sequence), "two", "b", "", now.Add(time.Hour)))
		for range 2 {
			if _, err := Add(t.Context(), st, b, now); err != nil {
				t.Fatal(err)
			}
			if err := TrimSamples(t.Context(), st, b, 250); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found := ids(t, st, SampleQuery{}); len(found) != 250 || found[0] != "s399" || found[249] != "s150" {
		t.Errorf("%d samples, from %v", len(found), found[:1])
	}
	if found := ids(t, st, SampleQuery{Org: "two"}); strings.Join(found, " ") != "s9003 s9002 s9001 s9000" {
		t.Errorf("of the other organisation: %v", found)
	}
	if found := ids(t, st, SampleQuery{Most: 3}); strings.Join(found, " ") != "s399 s398 s397" {
		t.Errorf("the newest three: %v", found)
	}
	if found := ids(t, st, SampleQuery{Since: now.Add((398 - 1000) * time.Second)}); len(found) != 2 {
		t.Errorf("since then: %v", found)
	}
	if found := ids(t, st, SampleQuery{API: "b"}); len(found) != 0 {
		t.Errorf("of another API: %v", found)
	}
	apis, err := SampledAPIs(t.Context(), st, "two")
	if err != nil || len(apis) != 1 || apis[0].Samples != 4 || apis[0].Last.After(now) {
		t.Errorf("%+v %v", apis, err)
	}
	kept := long
	kept.Samples = 700 * time.Second
	if _, err := Keep(t.Context(), st, now, kept); err != nil {
		t.Fatal(err)
	}
	if found := ids(t, st, SampleQuery{}); len(found) != 100 || found[99] != "s300" {
		t.Errorf("%d samples after their time", len(found))
	}
}

func TestSamplesAreBoundedInBytes(t *testing.T) {
	st, _ := fresh(t)
	large := sampled(0, "one", "a", "", time.Now())
	large.Body = strings.Repeat("x", usage.MaxSampleBody)
	fits := mostSampleBytes / large.Size()
	b := &usage.Batch{Gateway: "gw", Boot: "b", Samples: slices.Repeat([]usage.Sample{large}, 100)}
	for b.Sequence = 1; int(b.Sequence)*100 < fits+200; b.Sequence++ {
		if _, err := Add(t.Context(), st, b, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := TrimSamples(t.Context(), st, b, 100_000); err != nil {
		t.Fatal(err)
	}
	if found := ids(t, st, SampleQuery{}); len(found) != fits {
		t.Errorf("%d samples, want %d", len(found), fits)
	}
}

func TestSamplesGoWithTheirKeyAndOrganisation(t *testing.T) {
	st, url := fresh(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("insert into orgs (id, name) values ('one', 'One'), ('two', 'Two')")
	for _, key := range []string{"k1", "k2", "in clear"} {
		exec("insert into keys (key_hash, org_id, active, apis, policies, body) values ($1, 'one', true, '{}', '{}', '{}')", key)
	}
	masked := sha256.Sum256([]byte("in clear"))
	b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: 1, Samples: []usage.Sample{
		sampled(1, "one", "a", "k1", time.Now()), sampled(2, "one", "a", "k2", time.Now()), sampled(3, "one", "a", hex.EncodeToString(masked[:]), time.Now()),
		sampled(4, "one", "a", "", time.Now()), sampled(5, "two", "a", "", time.Now()), sampled(6, "one", "b", "k2", time.Now()),
	}}
	if _, err := Add(t.Context(), st, b, time.Now()); err != nil {
		t.Fatal(err)
	}
	exec("delete from keys where key_hash in ('k1', 'in clear')")
	if found := ids(t, st, SampleQuery{}); strings.Join(found, " ") != "s6 s4 s2" {
		t.Errorf("after two keys were deleted: %v", found)
	}
	exec("delete from orgs where id = 'two'")
	if found := ids(t, st, SampleQuery{Org: "two"}); found != nil {
		t.Errorf("after the organisation was deleted: %v", found)
	}
	n, err := DeleteSamples(t.Context(), st, store.Author{Org: "one", Name: "me"}, "b", "k2")
	if found := ids(t, st, SampleQuery{}); err != nil || n != 1 || strings.Join(found, " ") != "s4 s2" {
		t.Errorf("%d deleted, %v, left %v", n, err, found)
	}
}

// A run is seen by every admin, with how long it has been silent.
func TestRunsAreNoted(t *testing.T) {
	st, _ := fresh(t)
	if err := StartReplay(t.Context(), st, "one", "r1", 10); err != nil {
		t.Fatal(err)
	}
	if r, err := ReplayByID(t.Context(), st, "one", "r1"); err != nil || r.State != "running" || r.Total != 10 || r.Result != nil {
		t.Errorf("%+v %v", r, err)
	}
	if err := NoteReplay(t.Context(), st, &Replay{ID: "r1", State: "done", Done: 10, Result: []byte(`{"samples":10}`)}); err != nil {
		t.Fatal(err)
	}
	if r, err := ReplayByID(t.Context(), st, "one", "r1"); err != nil || r.State != "done" || r.Done != 10 || !strings.Contains(string(r.Result), "10") {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := ReplayByID(t.Context(), st, "two", "r1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another organisation: %v", err)
	}
	for n := range replaysKept + 5 {
		if err := StartReplay(t.Context(), st, "one", fmt.Sprint("n", n), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReplayByID(t.Context(), st, "one", "r1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the oldest of many: %v", err)
	}
}
