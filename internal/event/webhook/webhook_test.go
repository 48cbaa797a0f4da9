package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// got is a message as a service received it.
type got struct {
	method, path, body string
	header             http.Header
}

// service takes messages, and answers them as it is told.
type service struct {
	*httptest.Server
	got chan got
}

func newService(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *service {
	t.Helper()
	s := &service{got: make(chan got, 1000)}
	var mu sync.Mutex
	n := 0
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		n++
		now := n
		mu.Unlock()
		s.got <- got{r.Method, r.URL.RequestURI(), string(body), r.Header}
		if answer != nil {
			answer(now, w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) next(t *testing.T) got {
	t.Helper()
	select {
	case g := <-s.got:
		return g
	case <-time.After(60 * time.Second):
		t.Fatal("no message came")
		return got{}
	}
}

// start runs a sender; the function that is returned ends it.
func start(t *testing.T, change func(*Options)) (*Sender, func()) {
	t.Helper()
	o := Options{
		Addresses: dialguard.Policy{Private: true}, Timeout: 30 * time.Second,
		Pauses: []time.Duration{time.Millisecond, time.Millisecond}, Queue: 100, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	s := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	stop := sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return s, stop
}

var quota = event.Event{
	Name: event.QuotaExceeded, At: time.Unix(1_800_000_000, 0), API: "sample", Key: "0123456789ab",
	Detail: "Quota exceeded", Path: "/quota/get", Origin: netip.MustParseAddr("192.0.2.7"),
}

func TestAServiceIsToldOfAnEvent(t *testing.T) {
	to := newService(t, nil)
	s, stop := start(t, nil)
	s.Send(&Hook{Method: "PUT", URL: to.URL + "/hook?a=b", Header: map[string]string{"X-Key": "k"}}, quota)
	g := to.next(t)
	if g.method != "PUT" || g.path != "/hook?a=b" || g.header.Get("X-Key") != "k" || g.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", g)
	}
	want := `{"event":"QuotaExceeded","message":"Key Quota Limit Exceeded","path":"/quota/get","origin":"192.0.2.7","key":"0123456789ab","reason":"Quota exceeded"}`
	if g.body != want {
		t.Errorf("body %s", g.body)
	}
	stop()
	if now := s.Stats(); now.Sent != 1 || now.Failed+now.Dropped != 0 {
		t.Errorf("%+v", now)
	}
}

func TestMessagesOfEveryEventAreJSON(t *testing.T) {
	up := &event.Upstream{URL: "http://h:1/x", Host: "h:1", Status: 503, Error: `say "no"`, Path: "/p", Open: true}
	for name, want := range map[event.Name]string{
		event.TriggerExceeded:  `{"event":"TriggerExceeded","message":"Quota trigger reached","org":"o","key":"k","trigger_limit":"80","usage_percentage":"81"}`,
		event.HostDown:         `{"event":"HostDown","message":"d","url":"http://h:1/x","response_code":"503","tcp_error":"say \"no\"","host":"h:1","api_id":"a"}`,
		event.BreakerTripped:   `{"event":"BreakerTripped","message":"d","api_id":"a","path":"/p"}`,
		event.BreakerTriggered: `{"event":"BreakerTriggered","message":"d","api_id":"a","path":"/p","Status":"open"}`,
		event.TokenDeleted:     `{"event":"TokenDeleted","message":"Key deleted.","path":"","origin":"","key":"k","reason":"d"}`,
	} {
		e := event.Event{Name: name, API: "a", Org: "o", Key: "k", Detail: "d", Upstream: up, Trigger: event.Trigger{Limit: 80, Usage: 81}}
		if body := usual(&e); string(body) != want || !json.Valid(body) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestTemplatesSayWhatTheyLike(t *testing.T) {
	e := quota
	e.Path = `/a"b` + "\n</x>"
	for name, c := range map[string]struct {
		text, contentType, want string
	}{
		"members":     {`{{.Type}} {{.TimeStamp}} {{.Meta.Message}} {{.Meta.Key}} {{.Meta.Origin}}`, "", "QuotaExceeded 2027-01-15T08:00:00Z Key Quota Limit Exceeded 0123456789ab 192.0.2.7"},
		"unknown":     {`[{{.Meta.What}}]`, "", "[]"},
		"inside JSON": {`{"path":"{{.Meta.Path}}"}`, "", `{"path":"/a\"b\n\u003c/x\u003e"}`},
		"plain":       {`{{.Meta.Path}}`, "text/plain", "/a\"b\n</x>"},
	} {
		parsed, err := ParseTemplate("t", c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		h := &Hook{}
		if c.contentType != "" {
			h.Header = map[string]string{"content-type": c.contentType}
		}
		if body, err := parsed.render(&e, h.isJSON()); err != nil || string(body) != c.want {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
	for name, text := range map[string]string{
		"syntax": "{{", "member": "{{.Key}}", "endless": `{{range 1000000000}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{end}}`, "function": `{{system "ls"}}`,
	} {
		if _, err := ParseTemplate(name, text); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// Whoever defines an API must not hold up the events of the others.
func TestTemplatesThatRunForLongAreRefused(t *testing.T) {
	doubled := `{{$a := "0123456789"}}` + strings.Repeat(`{{$a = print $a $a}}`, 100)
	for name, text := range map[string]string{
		"a loop without output":  `{{range 1000000000000}}{{end}}`,
		"a loop over a function": `{{range len .Type}}{{end}}`,
		"loops in a loop":        `{{range .Meta}}{{range .}}{{end}}{{end}}`,
		"recursion":              `{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`,
		"a block":                `{{block "a" .}}{{end}}`,
		"a loop in a branch":     `{{if .Type}}{{else}}{{with .Type}}{{range 9}}{{end}}{{end}}{{end}}`,
		"texts that double":      doubled,
		"dots that double":       strings.Repeat(`{{with print . .}}`, 60) + strings.Repeat(`{{end}}`, 60),
		"quotes that double":     `{{"\\\\" | js` + strings.Repeat(` | js`, 60) + `}}`,
		"a width":                `{{printf "%1000000d" 1}}`,
		"a width after a sign":   `{{printf "%%%-100s" .Type}}`,
		"a width of an argument": `{{printf "%*d" 1000000 1}}`,
		"very many commands":     strings.Repeat(`{{.Type}}`, 501),
		"commands in commands":   `{{print ` + strings.Repeat(`(print .Type) `, 501) + `}}`,
	} {
		done := make(chan error, 1)
		go func() { _, err := ParseTemplate(name, text); done <- err }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: taken", name)
			}
		case <-time.After(60 * time.Second):
			t.Fatalf("%s: runs for more than a minute", name)
		}
	}
	for _, text := range []string{
		`{{range $k, $v := .Meta}}{{$k}}={{printf "%-10q 1000 %% %5.2f" $v 1.5}}{{end}}{{range $.Meta}}{{.}}{{else}}{{end}}`,
		`{{with .Meta.Key}}{{html .}}{{urlquery .}}{{println .}}{{end}}{{if and .Type (eq .Type "x") (not .Meta)}}{{len .Type}}{{end}}`,
	} {
		if _, err := ParseTemplate("t", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAMessageIsTriedAgainWhenThatMayHelp(t *testing.T) {
	for name, c := range map[string]struct {
		status, tries int
	}{
		"503": {503, 3}, "429": {429, 3}, "400": {400, 1}, "redirect": {302, 1},
	} {
		t.Run(name, func(t *testing.T) {
			to := newService(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
				w.WriteHeader(c.status)
			})
			s, stop := start(t, nil)
			s.Send(&Hook{Method: "POST", URL: to.URL}, quota)
			for range c.tries {
				to.next(t)
			}
			wait.Until(t, "the state that the test expects", func() bool { return s.Stats().Failed == 1 })
			stop()
			if n := len(to.got); n != 0 {
				t.Errorf("%d more tries", n)
			}
		})
	}
	t.Run("in the end", func(t *testing.T) {
		to := newService(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				w.WriteHeader(500)
			}
		})
		s, _ := start(t, nil)
		s.Send(&Hook{Method: "POST", URL: to.URL}, quota)
		wait.Until(t, "the state that the test expects", func() bool { return s.Stats().Sent == 1 })
	})
}

func TestAServiceThatHangsHoldsUpNoOtherAndItsQueueIsBounded(t *testing.T) {
	release := make(chan struct{})
	hanging := newService(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	other := newService(t, nil)
	s, stop := start(t, func(o *Options) { o.Queue = 10 })
	hung := &Hook{Method: "POST", URL: hanging.URL}
	s.Send(hung, quota)
	hanging.next(t)
	for range 100 {
		s.Send(hung, quota)
	}
	if now := s.Stats(); now.Dropped != 90 || now.Waiting != 10 {
		t.Errorf("%+v", now)
	}
	s.Send(&Hook{Method: "POST", URL: other.URL}, quota)
	other.next(t)
	close(release)
	stop()
	if now := s.Stats(); now.Sent != 12 {
		t.Errorf("%+v", now)
	}
	s.Send(hung, quota)
	if now := s.Stats(); now.Dropped != 91 {
		t.Errorf("after the end: %+v", now)
	}
}

func TestTheEndWaitsForNoServiceThatHangs(t *testing.T) {
	hanging := newService(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s, stop := start(t, func(o *Options) { o.Timeout, o.Pauses = 50*time.Millisecond, []time.Duration{time.Hour} })
	for range 50 {
		s.Send(&Hook{Method: "POST", URL: hanging.URL}, quota)
	}
	hanging.next(t)
	stop()
	if now := s.Stats(); now.Failed+now.Dropped != 50 || now.Dropped == 0 {
		t.Errorf("%+v", now)
	}
}

func TestAddressesThatNobodyMayAimAtAreNotCalled(t *testing.T) {
	to := newService(t, nil)
	var log bytes.Buffer
	s, stop := start(t, func(o *Options) {
		o.Addresses, o.Pauses, o.Log = dialguard.Policy{}, nil, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, url := range []string{to.URL + "/secret-path", "http://169.254.169.254/", "http://[::1]:1/", "http://localhost:1/"} {
		s.Send(&Hook{Method: "POST", URL: url}, quota)
	}
	wait.Until(t, "the state that the test expects", func() bool { return s.Stats().Failed == 4 })
	stop()
	if len(to.got) != 0 {
		t.Error("a private address was called")
	}
	if strings.Contains(log.String(), "secret-path") || !strings.Contains(log.String(), "never called") {
		t.Errorf("log: %s", log.String())
	}
}

func TestTheSameMessageIsSentOnceInItsCooldown(t *testing.T) {
	to := newService(t, nil)
	s, _ := start(t, nil)
	at := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { return at }
	hook := &Hook{Method: "POST", URL: to.URL, Cooldown: 10 * time.Second}
	other := quota
	other.Key = "another"
	s.Send(hook, quota)
	s.Send(hook, quota)
	s.Send(hook, other)
	at = at.Add(10 * time.Second)
	s.Send(hook, quota)
	for range 3 {
		to.next(t)
	}
	if now := s.Stats(); now.Same != 1 {
		t.Errorf("%+v", now)
	}
}

// A flood of different messages must not be looked through again for each of them.
func TestMessagesThatAreOverAreForgottenOnceASecond(t *testing.T) {
	r, at := newRecent(), time.Unix(1_800_000_000, 0)
	n := 0
	first := func() bool { n++; return r.first(sha256.Sum256([]byte(strconv.Itoa(n))), at, 500*time.Millisecond) }
	for range maxRecent + 100 {
		if !first() {
			t.Fatal("a message that is new was left out")
		}
	}
	at = at.Add(700 * time.Millisecond)
	if first(); len(r.until) != maxRecent {
		t.Errorf("%d are remembered so soon after they were looked through", len(r.until))
	}
	at = at.Add(300 * time.Millisecond)
	if first(); len(r.until) != 1 {
		t.Errorf("%d are remembered a second later", len(r.until))
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add(`{{.Type}} {{.Meta.Key}}`, "/path")
	f.Add(`{{range $k, $v := .Meta}}{{$k}}={{printf "%q" $v}}{{end}}`, `"`)
	f.Fuzz(func(t *testing.T, text, path string) {
		parsed, err := ParseTemplate("t", text)
		if err != nil {
			return
		}
		e := quota
		e.Path = path
		if body, err := parsed.render(&e, true); err == nil && len(body) > maxBody {
			t.Errorf("%d bytes", len(body))
		}
		if !json.Valid(usual(&e)) {
			t.Errorf("%q", usual(&e))
		}
	})
}
