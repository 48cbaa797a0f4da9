package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// deltaAdmin is an admin that sends what changed, written from the rules alone.
type deltaAdmin struct {
	mu             sync.Mutex
	revision       int
	apis, policies map[string]string
	past           map[string][2]map[string]string // by entity tag
	caches         map[string]int64
	lie            bool // about the digest
	whole, deltas  int  // answers
}

func startDeltas(t *testing.T) (*deltaAdmin, string) {
	a := &deltaAdmin{apis: map[string]string{}, policies: map[string]string{}, past: map[string][2]map[string]string{}}
	a.change(func() { a.apis["a"] = goodAPI })
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, s.URL
}

// change makes a revision.
func (a *deltaAdmin) change(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision++
	do()
	a.past[a.etag()] = [2]map[string]string{maps.Clone(a.apis), maps.Clone(a.policies)}
}

func (a *deltaAdmin) etag() string { return fmt.Sprintf(`"%d"`, a.revision) }

func (a *deltaAdmin) digest() string {
	var d definition.Digest
	for _, object := range a.apis {
		d.Add(definition.SumOf(definition.KindAPI, []byte(object)))
	}
	for _, object := range a.policies {
		d.Add(definition.SumOf(definition.KindPolicy, []byte(object)))
	}
	if a.lie {
		d.Add(definition.Sum{1})
	}
	return d.String()
}

func (a *deltaAdmin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	base, known := a.past[r.Header.Get("If-None-Match")]
	w.Header().Set("ETag", a.etag())
	switch {
	case r.Header.Get("If-None-Match") == a.etag():
		w.WriteHeader(http.StatusNotModified)
	case known && r.Header.Get("A-IM") == "sluice-delta":
		a.deltas++
		w.Header().Set("Delta-Base", r.Header.Get("If-None-Match"))
		w.WriteHeader(http.StatusIMUsed)
		fmt.Fprintf(w, `{"revision":"%d","digest":%q,"apis":%s,"policies":%s,"caches":%s}`, a.revision, a.digest(), differing(base[0], a.apis), differing(base[1], a.policies), a.forget())
	default:
		a.whole++
		fmt.Fprintf(w, `{"revision":"%d","apis":[%s],"policies":[%s],"digest":%q,"caches":%s}`, a.revision, listed(a.apis), listed(a.policies), a.digest(), a.forget())
	}
}

func (a *deltaAdmin) forget() []byte {
	text, _ := json.Marshal(a.caches)
	return text
}

func listed(objects map[string]string) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(objects)) {
		all = append(all, objects[id])
	}
	return strings.Join(all, ",")
}

func differing(before, now map[string]string) string {
	var members []string
	for id, object := range now {
		if before[id] != object {
			members = append(members, fmt.Sprintf("%q:%s", id, object))
		}
	}
	for id := range before {
		if now[id] == "" {
			members = append(members, fmt.Sprintf("%q:null", id))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// agrees compares a bundle with what the admin has.
func (a *deltaAdmin) agrees(t *testing.T, b *definition.Bundle) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	want, err := definition.ParseBundle(fmt.Appendf(nil, `{"apis":[%s],"policies":[%s]}`, listed(a.apis), listed(a.policies)))
	if err != nil {
		t.Fatal(err)
	}
	text := func(b *definition.Bundle) string {
		apis, err := json.Marshal(b.APIs)
		if err != nil {
			t.Fatal(err)
		}
		policies, err := json.Marshal(b.Policies)
		if err != nil {
			t.Fatal(err)
		}
		var skipped []string
		for _, s := range b.Skipped {
			skipped = append(skipped, s.APIID+s.ListenPath+s.Reason)
		}
		slices.Sort(skipped)
		return fmt.Sprintf("%s\n%s\n%s", apis, policies, skipped)
	}
	if got, wanted := text(b), text(want); got != wanted || b.Revision != fmt.Sprint(a.revision) || !maps.Equal(b.Caches, a.caches) {
		t.Fatalf("revision %s of %d:\n%s\nwant\n%s", b.Revision, a.revision, got, wanted)
	}
}

func (a *deltaAdmin) random(random *rand.Rand) {
	for range 1 + random.IntN(4) {
		id := fmt.Sprint("o", random.IntN(20))
		if random.IntN(5) == 0 {
			a.caches = map[string]int64{id: random.Int64N(9)}
		}
		switch random.IntN(6) {
		case 0:
			delete(a.apis, id)
			delete(a.policies, id)
		case 1:
			a.policies[id] = fmt.Sprintf(`{"id":%q,"name":"<%d>"}`, id, random.IntN(3))
		case 2:
			a.apis[id] = fmt.Sprintf(`{"api_id":%q,"proxy":{"listen_path":"/x"}}`, id) // has no target
		default:
			a.apis[id] = fmt.Sprintf(`{ "api_id": %q, "name": "n&%d", "proxy": {"listen_path": "/%s/", "target_url": "http://127.0.0.1:9"}}`, id, random.IntN(3), id)
		}
	}
}

func TestDeltasLeadToTheConfigurationOfTheAdmin(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	admin, url := startDeltas(t)
	dir := t.TempDir()
	a := fromAdmin(t, url, dir)
	b := next(t, a, "")
	for range 200 {
		admin.agrees(t, b)
		failed := map[string]error{}
		for _, s := range b.Skipped {
			failed[s.APIID] = fmt.Errorf("skipped")
		}
		a.Applied(b, failed)
		if len(failed) == 0 && !a.again {
			again, err := fromAdmin(t, url, dir).copy.load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			admin.agrees(t, again.bundle())
		}
		if !a.again {
			admin.change(func() { admin.random(random) })
		}
		before := b
		b = next(t, a, b.Revision)
		was := make(map[string]*definition.API)
		for _, api := range before.APIs {
			was[api.ID] = api
		}
		for _, api := range b.APIs {
			if old := was[api.ID]; old != nil && old != api && old.ContentHash() == api.ContentHash() && old.Name != "A" {
				t.Fatalf("%s did not change and is another object", api.ID)
			}
		}
	}
	if admin.deltas < 150 || admin.whole > 60 {
		t.Errorf("%d times what changed, %d times everything", admin.deltas, admin.whole)
	}
}

func TestAWrongDeltaIsFollowedByAWholeBundle(t *testing.T) {
	admin, url := startDeltas(t)
	a := fromAdmin(t, url, "")
	b := next(t, a, "")
	admin.change(func() { admin.lie = true; delete(admin.apis, "a") })
	if _, err := a.poll(t.Context()); err == nil || !strings.Contains(err.Error(), "digests differ") {
		t.Fatalf("a delta to something else: %v", err)
	}
	if _, err := a.poll(t.Context()); err == nil || !strings.Contains(err.Error(), "digests differ") {
		t.Fatalf("a bundle of something else: %v", err)
	}
	admin.change(func() { admin.lie = false })
	b = next(t, a, b.Revision)
	admin.agrees(t, b)
	if admin.whole != 3 || admin.deltas != 1 {
		t.Errorf("%d times everything, %d times what changed", admin.whole, admin.deltas)
	}
}

func TestADeltaIsAddedToTheCopyOnDisk(t *testing.T) {
	admin, url := startDeltas(t)
	dir := t.TempDir()
	admin.change(func() { admin.apis["large"] = largeAPI(100_000) })
	a := fromAdmin(t, url, dir)
	b := next(t, a, "")
	a.Applied(b, nil)
	path := filepath.Join(dir, "last-good.sealed")
	first := size(t, path)
	for i := range 5 {
		admin.change(func() { admin.apis["a"] = strings.Replace(goodAPI, "http://", fmt.Sprintf("http://%d.", i), 1) })
		b = next(t, a, b.Revision)
		a.Applied(b, nil)
	}
	if grown := size(t, path) - first; grown > 5000 {
		t.Errorf("5 changes of an API took %d bytes", grown)
	}
	damage(t, path, -10) // in the last change: a crash while it was written
	h, err := fromAdmin(t, url, dir).copy.load(t.Context())
	if err != nil || h.revision != fmt.Sprint(admin.revision-1) || len(h.apis) != 2 {
		t.Errorf("%v, %+v", err, h)
	}
	damage(t, path, 100) // in the bundle
	if _, err := fromAdmin(t, url, dir).copy.load(t.Context()); err == nil {
		t.Error("a damaged copy was used")
	}
}

// largeAPI is a definition of so many bytes and a few.
func largeAPI(bytes int) string {
	return fmt.Sprintf(`{"api_id":"large","x-pad":%q,"proxy":{"listen_path":"/large/","target_url":"http://127.0.0.1:9"}}`, strings.Repeat("x", bytes))
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// damage changes a byte of a file, counted from its end where at is negative.
func damage(t *testing.T, path string, at int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestACopyThatHasGrownIsRewritten(t *testing.T) {
	admin, url := startDeltas(t)
	dir := t.TempDir()
	a := fromAdmin(t, url, dir)
	b := next(t, a, "")
	a.Applied(b, nil)
	for i := range 5 {
		admin.change(func() {
			admin.apis["large"] = largeAPI(400_000 + i)
		})
		b = next(t, a, b.Revision)
		a.Applied(b, nil)
		if a.again {
			b = next(t, a, b.Revision)
			a.Applied(b, nil)
		}
	}
	if admin.whole != 2 || size(t, filepath.Join(dir, "last-good.sealed")) > 1_500_000 {
		t.Errorf("everything was sent %d times, the copy has %d bytes", admin.whole, size(t, filepath.Join(dir, "last-good.sealed")))
	}
	h, err := fromAdmin(t, url, dir).copy.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	admin.agrees(t, h.bundle())
}

func FuzzSplit(f *testing.F) {
	for _, text := range []string{
		`{"revision":"1","apis":[` + goodAPI + `],"policies":[{"id":"p"}]}`, `{"apis":[{},1,null,"x"],"x":{"y":[1]}}`, `{"apis":{}}`,
		`[]`, `{}`, `{"confirmed_empty":true,"digest":"0"}`, `{"apis":null}`, `{"apis":[1,]}`, `{} {}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := (*held)(nil).replacedBy(t.Context(), nil, data)
		if err != nil {
			return
		}
		want, err := definition.ParseBundle(data)
		if err != nil {
			return // what follows the bundle, or stands twice, is not looked at
		}
		if b := h.bundle(); len(b.APIs)+len(b.Policies)+len(b.Skipped) < len(want.APIs)+len(want.Policies)+len(want.Skipped) {
			t.Errorf("%d APIs, %d policies of %s", len(b.APIs), len(b.Policies), data)
		}
	})
}
