package source

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

const goodAPI = `{"api_id":"a","name":"A","use_keyless":true,"x-mine":{"b":1},"proxy":{"listen_path":"/a/","target_url":"http://127.0.0.1:9"}}`

// folder is an apps folder and a policies file with a source on them.
type folder struct {
	t   *testing.T
	dir string
	src *Files
}

func newFolder(t *testing.T, watch bool) *folder {
	f := &folder{t: t, dir: t.TempDir()}
	f.src = NewFiles(FilesOptions{
		AppsDir: f.dir, PoliciesFile: filepath.Join(f.dir, "policies", "p.json"), Watch: watch, Log: slog.New(slog.DiscardHandler),
	})
	if err := os.Mkdir(filepath.Join(f.dir, "policies"), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *folder) write(name, content string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) next(have string) *definition.Bundle {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 60*time.Second)
	defer cancel()
	b, err := f.src.Next(ctx, have)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

func TestFolderBecomesABundle(t *testing.T) {
	f := newFolder(t, false)
	f.write("one.json", goodAPI)
	f.write("unnamed.json", strings.Replace(goodAPI, `"api_id":"a",`, "", 1))
	f.write("a-oas.json", `{"openapi":"3.0.0"}`)
	f.write("notes.txt", "nothing")
	f.write("policies/p.json", `{"gold":{"name":"Gold","rate":5,"per":1}}`)
	b := f.next("")
	if len(b.APIs) != 2 || b.APIs[0].ID != "a" || b.APIs[1].ID != "unnamed" || len(b.Skipped) > 0 {
		t.Errorf("APIs %v, skipped %v", b.APIs, b.Skipped)
	}
	if len(b.Policies) != 1 || b.Policies[0].ID != "gold" {
		t.Errorf("policies %v", b.Policies)
	}
}

func TestBrokenFilesAreSkippedByNameAndKeepTheirAPI(t *testing.T) {
	f := newFolder(t, false)
	f.write("one.json", goodAPI)
	f.write("policies/p.json", `{"gold":{"name":"Gold"}}`)
	first := f.next("")
	f.write("one.json", `{"api_id":"a",`)
	f.write("twin.json", strings.Replace(goodAPI, `"a"`, `"b"`, 1))
	f.write("twin2.json", strings.Replace(goodAPI, `"a"`, `"b"`, 1))
	f.write("policies/p.json", `[]`)
	go func() { _ = f.src.Reload(t.Context()) }()
	b := f.next(first.Revision)
	if len(b.Skipped) != 3 {
		t.Fatalf("skipped %v", b.Skipped)
	}
	if s := b.Skipped[0]; s.Source != "one.json" || s.APIID != "a" || s.Reason == "" {
		t.Errorf("broken file: %+v", s)
	}
	if s := b.Skipped[1]; s.Source != "twin2.json" || s.APIID != "b" || !strings.Contains(s.Reason, "twin.json") {
		t.Errorf("second file of one API: %+v", s)
	}
	if len(b.Policies) != 1 || b.Policies[0].ID != "gold" {
		t.Errorf("a broken policies file replaced the good one: %v", b.Policies)
	}
	f.src.Applied(b, nil)
}

func TestReloadReturnsDefinitionsThatAreNotInForce(t *testing.T) {
	f := newFolder(t, false)
	f.write("one.json", goodAPI)
	have := f.next("").Revision
	for _, failed := range []map[string]error{nil, {"a": errors.New("no such file")}} {
		answer := make(chan error, 1)
		go func() { answer <- f.src.Reload(t.Context()) }()
		b := f.next(have) // also when nothing changed: the caller waits for an answer
		f.src.Applied(b, failed)
		err := <-answer
		if (err == nil) != (failed == nil) || err != nil && err.Error() != "a: no such file" {
			t.Errorf("reload: %v", err)
		}
	}
}

func TestEmptyFolderIsConfirmedOnlyByAReload(t *testing.T) {
	f := newFolder(t, true)
	f.write("one.json", goodAPI)
	have := f.next("").Revision
	if err := os.Remove(filepath.Join(f.dir, "one.json")); err != nil {
		t.Fatal(err)
	}
	if b := f.next(have); len(b.APIs) != 0 || b.ConfirmedEmpty { // within a second or two
		t.Errorf("noticed by watching: %+v", b)
	}
	go func() { _ = f.src.Reload(t.Context()) }()
	if b := f.next(have); !b.ConfirmedEmpty {
		t.Errorf("asked for: %+v", b)
	}
	f.src.Applied(nil, nil)
}

func TestWatchingNoticesAChange(t *testing.T) {
	f := newFolder(t, true)
	f.write("one.json", goodAPI)
	have := f.next("").Revision
	changed := make(chan *definition.Bundle, 1)
	go func() { changed <- f.next(have) }()
	f.write("two.json", strings.Replace(goodAPI, `"a"`, `"b"`, 1))
	if b := <-changed; len(b.APIs) != 2 {
		t.Errorf("got %v", b.APIs)
	}
}

func TestAMissingFolderIsAnEmptyStart(t *testing.T) {
	f := newFolder(t, false)
	f.src.opts.AppsDir = filepath.Join(f.dir, "none")
	if b := f.next(""); len(b.Skipped) != 1 || len(b.APIs) != 0 {
		t.Errorf("got %+v", b)
	}
	if err := os.Mkdir(f.src.opts.AppsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write("none/one.json", goodAPI)
	go func() { _ = f.src.Reload(t.Context()) }()
	b := f.next("none")
	if len(b.APIs) != 1 {
		t.Errorf("got %+v", b)
	}
	f.src.Applied(b, nil)
}

func TestWritesAreNotLiveBeforeAReload(t *testing.T) {
	f := newFolder(t, false)
	f.write("one.json", goodAPI)
	have := f.next("").Revision
	f.write("two.json", strings.Replace(goodAPI, `"a"`, `"b"`, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if b, err := f.src.Next(ctx, have); err == nil {
		t.Errorf("went live unasked: %v", b.APIs)
	}
}

func TestUnchangedDefinitionsKeepTheirObjects(t *testing.T) {
	f := newFolder(t, false)
	long := time.Now().Add(-time.Hour)
	for _, id := range []string{"a", "b", "c"} {
		f.write(id+".json", strings.Replace(goodAPI, `"a"`, `"`+id+`"`, 1))
		if err := os.Chtimes(filepath.Join(f.dir, id+".json"), long, long); err != nil {
			t.Fatal(err)
		}
	}
	f.write("policies/p.json", `{"gold":{"name":"Gold"},"iron":{"name":"Iron"}}`)
	reload := func(have *definition.Bundle) *definition.Bundle {
		done := make(chan error, 1)
		go func() { done <- f.src.Reload(t.Context()) }()
		b := f.next(have.Revision)
		f.src.Applied(b, nil)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := f.next("")
	f.write("b.json", strings.Replace(goodAPI, `"a"`, `"b"`, 1)) // written again, and no different
	f.write("c.json", strings.NewReplacer(`"a"`, `"c"`, `"A"`, `"C"`).Replace(goodAPI))
	f.write("policies/p.json", `{"iron":{"name":"Steel"},"gold":{"name":"Gold"}}`)
	second := reload(first)
	if first.APIs[0] != second.APIs[0] || first.APIs[1] != second.APIs[1] || first.APIs[2] == second.APIs[2] || second.APIs[2].Name != "C" {
		t.Errorf("APIs %v, then %v", first.APIs, second.APIs)
	}
	if first.Policies[0] != second.Policies[0] || second.Policies[1].Name != "Steel" {
		t.Errorf("policies %v, then %v", first.Policies, second.Policies)
	}
	f.write("c.json", strings.NewReplacer(`"a"`, `"c"`, `"A"`, `"D"`).Replace(goodAPI)) // as long, and within a tick of the clock
	if third := reload(second); third.APIs[2].Name != "D" || third.APIs[0] != first.APIs[0] {
		t.Errorf("APIs %v", third.APIs)
	}
}

func TestFaultsOfPoliciesAreReportedWithTheirPosition(t *testing.T) {
	f := newFolder(t, false)
	f.write("one.json", goodAPI)
	for text, want := range map[string]string{
		`{"gold":{"name":"Gold"}`: "line 1", `{"a":{"rate":"x"},"b":{"per":"y"}}`: `["b"].per`, `[]`: "object", `{} {}`: "JSON", `{"a":{"id":"b"}}`: "name of the entry",
	} {
		f.write("policies/p.json", text)
		b := f.src.mustRead(t)
		if len(b.Skipped) != 1 || !strings.Contains(b.Skipped[0].Reason, want) {
			t.Errorf("%s: %v, want %q", text, b.Skipped, want)
		}
	}
}

func (f *Files) mustRead(t *testing.T) *definition.Bundle {
	t.Helper()
	b, err := f.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMembersWithoutAnEffectAreLoggedOnce(t *testing.T) {
	f := newFolder(t, false)
	var log bytes.Buffer
	f.src.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	f.write("one.json", strings.Replace(goodAPI, "{", `{"use_keyles":true,`, 1))
	f.write("policies/p.json", `{"gold":{"name":"Gold","quota_mx":5}}`)
	have := f.next("").Revision
	for _, want := range []string{"file=one.json api=a", "use_keyles: is not known to this release and has no effect; did you mean use_keyless?", `quota_mx: is not known to this release and has no effect; did you mean quota_max?`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &log)
		}
	}
	log.Reset()
	f.write("two.json", strings.Replace(goodAPI, `"a"`, `"b"`, 1))
	answer := make(chan error, 1)
	go func() { answer <- f.src.Reload(t.Context()) }()
	f.src.Applied(f.next(have), nil)
	if err := <-answer; err != nil || log.Len() > 0 {
		t.Errorf("%v, logged again:\n%s", err, &log)
	}
}

// TestAFolderServesTheSegmentsOfItsGateway: APIs without tags, and those with one of the
// gateway's.
func TestAFolderServesTheSegmentsOfItsGateway(t *testing.T) {
	f := newFolder(t, false)
	f.src.opts.Tags = []string{"eu"}
	f.write("a.json", goodAPI)
	for _, tag := range []string{"eu", "us"} {
		f.write(tag+".json", strings.Replace(goodAPI, `"api_id":"a",`, `"api_id":"`+tag+`","tags":["`+tag+`"],`, 1))
	}
	b := f.next("")
	if len(b.APIs) != 2 || b.APIs[0].ID != "a" || b.APIs[1].ID != "eu" || len(b.Elsewhere) != 1 || b.Elsewhere[0].ID != "us" || len(b.Skipped) > 0 {
		t.Errorf("APIs %v, elsewhere %v, skipped %v", b.APIs, b.Elsewhere, b.Skipped)
	}
}
