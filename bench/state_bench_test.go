package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
)

// loads is how many APIs and policies there are where much state is measured.
const loads = 100_000

// definitions are the JSON of many APIs and policies.
func definitions(n int, target string) (apis, policies []string) {
	for i := range n {
		id := fmt.Sprintf("%06d", i)
		apis = append(apis, fmt.Sprintf(`{"api_id":"api-%s","name":"API %s","org_id":"bench","active":true,"auth":{"auth_header_name":"Authorization"},`+
			`"proxy":{"listen_path":"/api-%s/","target_url":%q,"strip_listen_path":true}}`, id, id, id, target))
		policies = append(policies, fmt.Sprintf(`{"id":"policy-%s","name":"Policy %s","org_id":"bench","rate":1000,"per":1,"quota_max":-1,`+
			`"access_rights":{"api-%s":{"api_id":"api-%s","api_name":"API %s","versions":["Default"]}}}`, id, id, id, id, id))
	}
	return apis, policies
}

// took is what something cost.
type took struct {
	tb    testing.TB
	wall  time.Time
	cpu   time.Duration
	bytes uint64
}

func spend(tb testing.TB) took {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return took{tb, time.Now(), cpu(tb), m.TotalAlloc}
}

func (s took) report(b *testing.B, n int) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64((cpu(s.tb)-s.cpu).Microseconds())/1000/float64(n), "cpu-ms")
	b.ReportMetric(float64(time.Since(s.wall).Microseconds())/1000/float64(n), "wall-ms")
	b.ReportMetric(float64(m.TotalAlloc-s.bytes)/1024/float64(n), "alloc-KiB")
	b.ReportMetric(0, "ns/op")
}

// feeder is an admin that sends what changed.
type feeder struct {
	revision       int
	apis, policies []string
	first          []string          // the APIs before any change
	changed        map[string]string // since the revision before
	digest         definition.Digest
}

func newFeeder(n int, target string) *feeder {
	f := &feeder{revision: 1}
	f.first, f.policies = definitions(n, target)
	f.apis = slices.Clone(f.first)
	for i := range n {
		f.digest.Add(definition.SumOf(definition.KindAPI, []byte(f.apis[i])))
		f.digest.Add(definition.SumOf(definition.KindPolicy, []byte(f.policies[i])))
	}
	return f
}

// change makes a revision in which so many APIs are different.
func (f *feeder) change(n, turn int) {
	f.revision++
	f.changed = make(map[string]string)
	for i := range n {
		i = i * (len(f.apis) / n)
		f.digest.Remove(definition.SumOf(definition.KindAPI, []byte(f.apis[i])))
		f.apis[i] = strings.Replace(f.first[i], `"target_url":"`, fmt.Sprintf(`"x-n":%d,"target_url":"`, turn), 1)
		f.digest.Add(definition.SumOf(definition.KindAPI, []byte(f.apis[i])))
		f.changed[fmt.Sprintf("api-%06d", i)] = f.apis[i]
	}
}

func (f *feeder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", fmt.Sprintf(`"%d"`, f.revision))
	if have := r.Header.Get("If-None-Match"); have != fmt.Sprintf(`"%d"`, f.revision-1) || r.Header.Get("A-IM") == "" {
		fmt.Fprintf(w, `{"revision":"%d","digest":%q,"apis":[%s],"policies":[%s]}`, f.revision, f.digest, strings.Join(f.apis, ","), strings.Join(f.policies, ","))
		return
	}
	w.Header().Set("Delta-Base", r.Header.Get("If-None-Match"))
	w.WriteHeader(http.StatusIMUsed)
	changes := make(map[string]json.RawMessage)
	for id, api := range f.changed {
		changes[id] = json.RawMessage(api)
	}
	if err := json.NewEncoder(w).Encode(definition.Delta{Revision: fmt.Sprint(f.revision), Digest: f.digest.String(), APIs: changes}); err != nil {
		panic(err)
	}
}

// follower is a world that takes its configuration from a feeder.
type follower struct {
	*world
	src  *source.Admin
	have string
}

func follow(b *testing.B, f *feeder, cpu float64) *follower {
	server := httptest.NewServer(f)
	b.Cleanup(server.Close)
	w := newWorld(b, settings{reloadCPU: cpu})
	src, err := source.NewAdmin(source.AdminOptions{
		URL: server.URL, Token: secret.New("token"), StateDir: b.TempDir(), CPU: cpu,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	return &follower{world: w, src: src}
}

// take takes the next configuration, from the wire to the disk.
func (f *follower) take() {
	b, err := f.src.Next(context.Background(), f.have)
	if err != nil {
		f.tb.Fatal(err)
	}
	failed := f.Apply(b)
	for id, err := range failed {
		f.tb.Fatalf("%s is not served: %v", id, err)
	}
	f.have = b.Revision
	f.src.Applied(b, failed)
}

// BenchmarkReload loads 100,000 APIs and as many policies from an admin, then changes.
func BenchmarkReload(b *testing.B) {
	b.Run("everything at the start", func(b *testing.B) {
		f := newFeeder(loads, "http://127.0.0.1:9")
		empty := heap()
		for range b.N {
			w := follow(b, f, 0.2)
			s := spend(b)
			w.take()
			s.report(b, 1)
			b.ReportMetric(float64(heap()-empty)/loads, "B/pair")
			runtime.KeepAlive(w)
		}
	})
	for _, c := range []struct {
		changed int
		cpu     float64
	}{{1, 0.2}, {100, 0.2}, {10_000, 0}, {10_000, 0.2}, {loads, 0}, {loads, 0.2}} {
		b.Run(fmt.Sprintf("%d changed at %v", c.changed, c.cpu), func(b *testing.B) {
			f := newFeeder(loads, "http://127.0.0.1:9")
			w := follow(b, f, c.cpu)
			w.take()
			b.ResetTimer()
			var all took
			n := 0
			for range b.N {
				f.change(c.changed, n)
				if n == 0 {
					all = spend(b)
				}
				n++
				w.take()
			}
			all.report(b, n)
		})
	}
}

// BenchmarkFolder loads 100,000 files, then a changed one.
func BenchmarkFolder(b *testing.B) {
	dir := b.TempDir()
	apis, policies := definitions(loads, "http://127.0.0.1:9")
	past := time.Now().Add(-time.Hour)
	for i, text := range apis {
		name := filepath.Join(dir, fmt.Sprintf("api-%06d.json", i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(name, past, past); err != nil {
			b.Fatal(err)
		}
	}
	members := make([]string, loads)
	for i, text := range policies {
		members[i] = fmt.Sprintf(`"policy-%06d":%s`, i, text)
	}
	file := filepath.Join(b.TempDir(), "policies.json")
	if err := os.WriteFile(file, []byte("{"+strings.Join(members, ",")+"}"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("everything at the start", func(b *testing.B) {
		for range b.N {
			f := newFolder(b, dir, file, 0.2)
			s := spend(b)
			f.take()
			s.report(b, 1)
		}
	})
	for _, share := range []float64{0, 0.2} {
		f := newFolder(b, dir, file, share)
		f.take()
		b.Run(fmt.Sprintf("one changed at %v", share), func(b *testing.B) {
			var all took
			for n := range b.N {
				text := strings.Replace(apis[7], `"target_url":"`, fmt.Sprintf(`"x-n":%d,"target_url":"`, n), 1)
				if err := os.WriteFile(filepath.Join(dir, "api-000007.json"), []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
				if n == 0 {
					all = spend(b)
				}
				f.take()
			}
			all.report(b, b.N)
		})
	}
}

// folder is a world that takes its configuration from files.
type folder struct {
	*world
	src  *source.Files
	have string
}

func newFolder(b *testing.B, apps, policies string, cpu float64) *folder {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	src := source.NewFiles(source.FilesOptions{AppsDir: apps, PoliciesFile: policies, CPU: cpu, Log: log})
	return &folder{world: newWorld(b, settings{reloadCPU: cpu}), src: src}
}

// take reads the files: at the start, and after a change.
func (f *folder) take() {
	reloaded := make(chan error, 1)
	if f.have == "" {
		reloaded <- nil
	} else {
		go func() { reloaded <- f.src.Reload(context.Background()) }()
	}
	bundle, err := f.src.Next(context.Background(), f.have)
	if err != nil {
		f.tb.Fatal(err)
	}
	f.src.Applied(bundle, f.Apply(bundle))
	f.have = bundle.Revision
	if err := <-reloaded; err != nil {
		f.tb.Fatal(err)
	}
}
