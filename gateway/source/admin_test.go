package source

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
)

// fakeAdmin answers polls as an admin does.
type fakeAdmin struct {
	body  atomic.Pointer[string]
	down  atomic.Bool
	heard chan http.Header
}

func (a *fakeAdmin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.down.Load() || r.Header.Get("Authorization") != "Bearer token" {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	select {
	case a.heard <- r.Header:
	default:
	}
	body := *a.body.Load()
	etag := fmt.Sprintf(`"%d"`, len(body))
	w.Header().Set("ETag", etag)
	w.Header().Set("X-Sluice-Gateways", "3")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprint(w, body)
}

func startAdmin(t *testing.T) (*fakeAdmin, string) {
	a := &fakeAdmin{heard: make(chan http.Header, 100)}
	a.set("1", goodAPI)
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, s.URL
}

func (a *fakeAdmin) set(revision string, apis ...string) {
	body := fmt.Sprintf(`{"revision":%q,"apis":[%s],"policies":[]}`, revision, strings.Join(apis, ","))
	a.body.Store(&body)
}

func fromAdmin(t *testing.T, url, dir string) *Admin {
	t.Helper()
	a, err := NewAdmin(AdminOptions{
		URL: url, Token: secret.New("token"), Gateway: "g1", Group: "default", StateDir: dir, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func next(t *testing.T, a *Admin, have string) *definition.Bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	b, err := a.Next(ctx, have)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBundlesComeFromTheAdmin(t *testing.T) {
	admin, url := startAdmin(t)
	a := fromAdmin(t, url, t.TempDir())
	b := next(t, a, "")
	if b.Revision != "1" || len(b.APIs) != 1 || a.Origin() != FromAdmin || a.Gateways() != 3 {
		t.Errorf("%+v from %d, %d gateways", b, a.Origin(), a.Gateways())
	}
	<-admin.heard
	a.Applied(b, map[string]error{"a": fmt.Errorf("line\nbreak")})
	admin.set("22", goodAPI, `{"api_id":"b","proxy":{}}`)
	if b = next(t, a, "1"); b.Revision != "22" || len(b.APIs) != 1 || len(b.Skipped) != 1 || b.Skipped[0].APIID != "b" {
		t.Errorf("%+v", b)
	}
	h := <-admin.heard
	if h.Get("X-Sluice-Revision") != "1" || h.Get("X-Sluice-Failed") != "1" || h.Get("X-Sluice-Error") != "a: line break" {
		t.Errorf("the admin received %v", h)
	}
}

func TestReloadHandsOutTheSameRevisionAgain(t *testing.T) {
	admin, url := startAdmin(t)
	a := fromAdmin(t, url, "")
	next(t, a, "")
	admin.set("1", goodAPI+" ") // another entity tag, the same revision
	if b := next(t, a, "1"); b.Revision != "1" {
		t.Errorf("got %+v", b)
	}
}

func TestLastGoodCopyOutlivesAdminAndGateway(t *testing.T) {
	admin, url := startAdmin(t)
	dir := t.TempDir()
	first := fromAdmin(t, url, dir)
	first.Applied(next(t, first, ""), nil)
	admin.down.Store(true)
	again := fromAdmin(t, url, dir)
	b := next(t, again, "")
	if b.Revision != "1" || len(b.APIs) != 1 || string(b.APIs[0].Unknown.Get("x-mine")) != `{"b":1}` {
		t.Errorf("from disk: %+v", b)
	}
	if again.Origin() != FromDisk || !again.Away() {
		t.Errorf("origin %d, away %v", again.Origin(), again.Away())
	}
	again.Applied(b, nil)
	admin.set("22", goodAPI)
	admin.down.Store(false)
	if b := next(t, again, "1"); b.Revision != "22" || again.Origin() != FromAdmin || again.Away() {
		t.Errorf("after the admin is back: %+v", b)
	}
}

func TestCopyThatFailedInPartIsNotKept(t *testing.T) {
	_, url := startAdmin(t)
	dir := t.TempDir()
	a := fromAdmin(t, url, dir)
	a.Applied(next(t, a, ""), map[string]error{"a": fmt.Errorf("bad")})
	if _, err := os.Stat(filepath.Join(dir, "last-good.sealed")); !os.IsNotExist(err) {
		t.Errorf("kept: %v", err)
	}
}

func TestCopyIsSealedWithTheToken(t *testing.T) {
	_, url := startAdmin(t)
	dir := t.TempDir()
	a := fromAdmin(t, url, dir)
	a.Applied(next(t, a, ""), nil)
	path := filepath.Join(dir, "last-good.sealed")
	sealed, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(sealed), "listen_path") {
		t.Fatalf("%.40q, %v", sealed, err)
	}
	sealed[len(sealed)-1] ^= 1
	if err := os.WriteFile(path, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.copy.load(t.Context()); err == nil {
		t.Error("a damaged copy was used")
	}
	other, err := newLastGood(dir, secret.New("another"), secret.Value{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.load(t.Context()); err == nil {
		t.Error("a copy of another token was used")
	}
}

func TestAddressMustBeAURL(t *testing.T) {
	if _, err := NewAdmin(AdminOptions{URL: "admin:8081"}); err == nil || !strings.Contains(err.Error(), "gateway.admin_url") {
		t.Errorf("got %v", err)
	}
}

func TestCopyOfTheFormerTokenIsRead(t *testing.T) {
	admin, url := startAdmin(t)
	dir := t.TempDir()
	former := fromAdmin(t, url, dir)
	former.Applied(next(t, former, ""), nil)
	admin.down.Store(true)
	rotated, err := NewAdmin(AdminOptions{
		URL: url, Token: secret.New("another"), Former: secret.New("token"), StateDir: dir, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if b := next(t, rotated, ""); b.Revision != "1" || rotated.Origin() != FromDisk {
		t.Errorf("with the former token too: %+v", b)
	}
}

func TestTroubleNamesWhatIsAway(t *testing.T) {
	for _, c := range []struct {
		status int
		away   string
		want   string
	}{
		{503, "database", "the admin answers, but its database is away"},
		{503, "", "the admin answers 503 Service Unavailable"},
		{401, "", "the admin refuses this gateway's token"},
		{429, "", "the admin refuses this address, after too many calls with a wrong token"},
	} {
		var good atomic.Bool
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if good.Load() {
				fmt.Fprintf(w, `{"revision":"1","apis":[%s],"policies":[]}`, goodAPI)
				return
			}
			w.Header().Set("X-Sluice-Away", c.away)
			w.WriteHeader(c.status)
		}))
		a := fromAdmin(t, s.URL, "")
		if _, err := a.poll(t.Context()); err == nil {
			t.Fatal("a refused poll brought something")
		} else {
			a.fail(err)
		}
		if !a.Away() || a.Trouble() != c.want {
			t.Errorf("%d %s: %q, want %q", c.status, c.away, a.Trouble(), c.want)
		}
		good.Store(true)
		if next(t, a, ""); a.Away() || a.Trouble() != "" {
			t.Errorf("afterwards: %q", a.Trouble())
		}
		s.Close()
		_, err := a.poll(t.Context())
		a.fail(err)
		if a.Trouble() != "the admin does not answer" {
			t.Errorf("nobody there: %q", a.Trouble())
		}
	}
}

// TestTheAdminHearsTheTags: and APIs of other segments are left out even if it sends them.
func TestTheAdminHearsTheTags(t *testing.T) {
	admin, url := startAdmin(t)
	a := fromAdmin(t, url, "")
	a.opts.Tags = []string{"eu", "a,b"}
	admin.set("1", goodAPI, strings.Replace(goodAPI, `"api_id":"a",`, `"api_id":"us","tags":["us"],`, 1))
	if b := next(t, a, ""); len(b.APIs) != 1 || b.APIs[0].ID != "a" || len(b.Elsewhere) != 1 {
		t.Errorf("%+v", b)
	}
	if got := (<-admin.heard).Get("X-Sluice-Tags"); got != "a%2Cb,eu" {
		t.Errorf("the admin heard %q", got)
	}
}
