package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/testenv"
)

// world is a sink with a
type world struct {
	*Sink
	url string
	got chan string
	log *bytes.Buffer
	api *definition.API
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{got: make(chan string, 100), log: new(bytes.Buffer)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.got <- r.Method + " " + r.URL.Path + " " + string(body)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	sender := New(Options{
		Addresses: dialguard.Policy{Private: true}, Timeout: 30 * time.Second, Queue: 100, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { sender.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	w.Sink = NewSink(SinkOptions{
		API: func(id string) *definition.API {
			if w.api != nil && w.api.ID == id {
				return w.api
			}
			return nil
		},
		Sender: sender, Templates: t.TempDir(), Log: slog.New(slog.NewTextHandler(w.log, nil)),
	})
	return w
}

// serve serves an API with these handlers of one event.
func (w *world) serve(name event.Name, list string) {
	w.api = &definition.API{ID: "a", EventHandlers: testenv.Part[definition.EventHandlers](fmt.Sprintf(`{"events":{%q:[%s]}}`, name, list))}
}

func (w *world) hook(meta string) string {
	return fmt.Sprintf(`{"handler_name":"eh_web_hook_handler","handler_meta":{"target_path":"%s/h"%s}}`, w.url, meta)
}

func (w *world) next(t *testing.T) string {
	t.Helper()
	select {
	case g := <-w.got:
		return g
	case <-time.After(60 * time.Second):
		t.Fatal("nobody was told")
		return ""
	}
}

func TestHandlersOfAnAPIAreToldOfItsEvents(t *testing.T) {
	w := newWorld(t)
	w.serve(event.QuotaExceeded, w.hook(`,"method":"POST"`)+`,{"handler_name":"eh_log_handler","handler_meta":{"prefix":"mine: "}}`)
	w.Handle(event.Event{Name: event.AuthFailure, API: "a"})
	w.Handle(event.Event{Name: event.QuotaExceeded, API: "b"})
	w.Handle(event.Event{Name: event.QuotaExceeded, API: "a", Key: "k"})
	if g := w.next(t); !strings.HasPrefix(g, `POST /h {"event":"QuotaExceeded"`) {
		t.Error(g)
	}
	if n := strings.Count(w.log.String(), "mine: QuotaExceeded"); n != 1 {
		t.Errorf("%d log lines: %s", n, w.log)
	}
	w.serve(event.QuotaExceeded, w.hook(`,"method":"BREW"`))
	w.Handle(event.Event{Name: event.QuotaExceeded, API: "a", Key: "k"})
	if g := w.next(t); !strings.HasPrefix(g, "GET /h") {
		t.Errorf("after a change: %s", g)
	}
	w.api = nil
	w.Handle(event.Event{Name: event.QuotaExceeded, API: "a"})
	if len(w.apis) != 0 {
		t.Error("an API that is gone is remembered")
	}
}

func TestLogHandlersFillNoDisk(t *testing.T) {
	w := newWorld(t)
	w.serve(event.AuthFailure, `{"handler_name":"eh_log_handler","handler_meta":{"prefix":"mine: "}}`)
	at := time.Unix(1_800_000_000, 0)
	for range 1000 {
		w.Handle(event.Event{Name: event.AuthFailure, API: "a", At: at})
	}
	w.Handle(event.Event{Name: event.AuthFailure, API: "a", At: at.Add(time.Second)})
	if n := strings.Count(w.log.String(), "mine: AuthFailure"); n != 6 || !strings.Contains(w.log.String(), "omitted=995") {
		t.Errorf("%d lines: %.2000s", n, w.log)
	}
}

func TestTemplatesAreFilesOfOneFolder(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.opts.Templates, "short"), []byte(`{"key":"{{.Meta.Key}}"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.serve(event.AuthFailure, w.hook(`,"template_path":"short"`)+","+w.hook(`,"template_path":"missing"`)+","+w.hook(`,"template":"t {{.Type}}"`))
	w.Handle(event.Event{Name: event.AuthFailure, API: "a", Key: "k"})
	all := w.next(t) + "\n" + w.next(t) + "\n" + w.next(t)
	for _, want := range []string{`GET /h {"key":"k"}`, `GET /h {"event":"AuthFailure"`, `GET /h t AuthFailure`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing in %s", want, all)
		}
	}
	if !strings.Contains(w.log.String(), "missing") {
		t.Errorf("log: %s", w.log)
	}
	for _, file := range []string{"../x", "/etc/passwd"} {
		if _, err := LoadTemplate(w.opts.Templates, file, ""); err == nil {
			t.Errorf("%s was read", file)
		}
	}
}

func TestEventsOfNoAPIGoToThoseOfTheSettings(t *testing.T) {
	w := newWorld(t)
	w.opts.All = []*Hook{{Method: "POST", URL: w.url + "/all"}}
	w.opts.Trigger = &Hook{Method: "POST", URL: w.url + "/trigger"}
	w.Handle(event.Event{Name: event.TokenCreated, Key: "k"})
	w.Handle(event.Event{Name: event.TriggerExceeded, API: "a", Key: "k", Trigger: event.Trigger{Limit: 80, Usage: 80}})
	w.Handle(event.Event{Name: event.AuthFailure, API: "a"})
	if all := w.next(t) + w.next(t); !strings.Contains(all, "/all") || !strings.Contains(all, "/trigger") {
		t.Error(all)
	}
}
