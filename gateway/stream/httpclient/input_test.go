package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

func pollOf(address string) *streams.HTTPPoll {
	return &streams.HTTPPoll{
		HTTPRequest: streams.HTTPRequest{URL: streams.Template(address), Verb: "GET", Timeout: time.Minute, RetryPeriod: time.Millisecond},
		Period:      time.Millisecond, DropEmptyBodies: true, Reconnect: true,
	}
}

// started returns an input that has been started.
func started(t *testing.T, c *streams.HTTPPoll, at *stream.Site, to stream.Flow) stream.Input {
	t.Helper()
	in, err := NewInput(c, at)
	if err != nil {
		t.Fatal(err)
	}
	in.Start(to)
	t.Cleanup(func() {
		in.Stop(t.Context())
		in.Close()
		if phase, _ := at.State.Phase(); phase != stream.Stopped {
			t.Errorf("phase %s at the end", phase)
		}
		noGoroutines(t)
	})
	return in
}

func TestAPollGivesAMessage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Set-Cookie", "secret")
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI)
	}))
	t.Cleanup(server.Close)
	at, log := siteFor(t)
	f := newFlow(true)
	started(t, pollOf(server.URL+"/a?b"), at, f)
	first, second := next(t, f.got), next(t, f.got)
	if string(first.Body) != "GET /a?b" || first.ID == "" || first.ID == second.ID || first.Attempt != 1 || first.At.IsZero() {
		t.Errorf("%+v", first.Message)
	}
	if got := fmt.Sprint(first.Meta); got != "[{http_status_code 200} {content-length 8} {content-type text/plain}]" {
		t.Error(got)
	}
	if phase, _ := at.State.Phase(); phase != stream.Running || at.State.Attempts.Load() < 2 || at.State.Lag.Load() != -1 || log.String() != "" {
		t.Errorf("phase %s, %d attempts, log %s", phase, at.State.Attempts.Load(), log)
	}
}

// A server that is slow is asked again in the next period that begins, and not before.
func TestPollsDoNotOverlapOrBunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, busy := time.Now(), atomic.Int32{}
		var at []time.Duration
		slow := tripper(func(*http.Request) (*http.Response, error) {
			if busy.Add(1) > 1 {
				t.Error("polls overlap")
			}
			defer busy.Add(-1)
			at = append(at, time.Since(began))
			if len(at) == 2 {
				time.Sleep(3500 * time.Millisecond)
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("x"))}, nil
		})
		site, _ := siteFor(t)
		site.HTTP = slow.forSite
		c := pollOf("http://a")
		c.Period = time.Second
		in, err := NewInput(c, site)
		if err != nil {
			t.Fatal(err)
		}
		in.Start(newFlow(true))
		time.Sleep(7500 * time.Millisecond)
		in.Stop(t.Context())
		in.Close()
		if want := "[0s 1s 5s 6s 7s]"; fmt.Sprint(at) != want {
			t.Errorf("polls at %v, want %s", at, want)
		}
	})
}

func TestFailedPollsAreRepeatedWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		statuses := []int{503, 500, 200, 500, 500, 500, 500, 404, 299, 200}
		answers := tripper(func(*http.Request) (*http.Response, error) {
			i := min(len(at), len(statuses)-1)
			at = append(at, time.Since(began))
			h := http.Header{}
			if i == 0 {
				h.Set("Retry-After", "3")
			}
			return &http.Response{StatusCode: statuses[i], Header: h, Body: io.NopCloser(strings.NewReader("x"))}, nil
		})
		site, log := siteFor(t)
		site.HTTP = answers.forSite
		c := pollOf("http://a")
		c.Period, c.RetryPeriod, c.MaxRetryBackoff, c.Retries, c.DropOn = time.Minute, 2*time.Second, 3*time.Second, 3, []int{299}
		in, err := NewInput(c, site)
		if err != nil {
			t.Fatal(err)
		}
		f := newFlow(true)
		in.Start(f)
		time.Sleep(4*time.Minute + time.Second)
		in.Stop(t.Context())
		in.Close()
		if len(at) != 10 || len(f.got) != 2 {
			t.Fatalf("%d messages of polls at %v", len(f.got), at)
		}
		// The pauses have a jitter of half their length.
		for i, bounds := range [][2]time.Duration{
			{0, 0},
			{3 * time.Second, 3 * time.Second},
			{4500 * time.Millisecond, 6 * time.Second},
			{time.Minute, time.Minute},
			{time.Minute + time.Second, time.Minute + 2*time.Second},
			{time.Minute + 2*time.Second, time.Minute + 5*time.Second},
			{time.Minute + 3*time.Second, time.Minute + 8*time.Second},
			{2 * time.Minute, 2 * time.Minute},
			{3 * time.Minute, 3 * time.Minute},
			{4 * time.Minute, 4 * time.Minute},
		} {
			if at[i] < bounds[0] || at[i] > bounds[1] {
				t.Errorf("poll %d is at %v, want %v", i, at[i], bounds)
			}
		}
		if n := counts(site.State); n != "2 5 1 10" {
			t.Errorf("errors and attempts: %s", n)
		}
		if strings.Count(log.String(), "\n") != 3 { // once for each time that polls begin to fail, or cannot mend
			t.Errorf("log %s", log)
		}
	})
}

// counts returns the errors of the classes Permanent, Unknown and Transient, and the attempts.
func counts(s *stream.State) string {
	return fmt.Sprint(s.Errors[stream.Permanent].Load(), s.Errors[stream.Unknown].Load(), s.Errors[stream.Transient].Load(), s.Attempts.Load())
}

func TestNothingIsFetchedWithoutDemand(t *testing.T) {
	calls := atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, calls.Add(1))
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(false)
	in := started(t, pollOf(server.URL), at, f).(*input)
	if phase, _ := at.State.Phase(); phase != stream.Waiting {
		t.Errorf("phase %s", phase)
	}
	in.call() // as a timer that was late would
	if calls.Load() != 0 {
		t.Error("the server is called without demand")
	}
	f.full.Lock()
	f.demand.Set(true)
	next(t, f.asked)
	next(t, f.asked) // it is tried again while there is demand
	f.demand.Set(false)
	eventually(t, "the end of the poll", func() bool { return !in.isCalling() })
	f.full.Unlock()
	in.call()
	if calls.Load() != 1 || len(f.got) != 0 {
		t.Errorf("%d calls, %d messages", calls.Load(), len(f.got))
	}
	f.demand.Set(true)
	for i := range 3 {
		if one := next(t, f.got); string(one.Body) != fmt.Sprint(i+1) {
			t.Errorf("message %d is %s", i+1, one.Body)
		}
	}
}

func (in *input) isCalling() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.calling
}

// A poller has neither goroutine nor connection while it waits for the next period.
func TestAnIdlePollerHasNoGoroutine(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "x")
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	c := pollOf(server.URL)
	c.Period = time.Hour
	started(t, c, at, f)
	next(t, f.got)
	noGoroutines(t)
	failing := pollOf("http://127.0.0.1:1")
	failing.RetryPeriod, failing.Retries = time.Hour, 9
	at, _ = siteFor(t)
	started(t, failing, at, f)
	eventually(t, "a failure", func() bool { _, err := at.State.Last(); return err != nil })
	noGoroutines(t)
	if phase, _ := at.State.Phase(); phase != stream.Reconnecting {
		t.Errorf("phase %s", phase)
	}
}

func TestTemplatesSeeTheLastMessage(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.RequestURI+" "+r.Header.Get("If-None-Match")+" "+string(body))
		switch len(asked) {
		case 1, 4:
			w.Header().Set("Etag", fmt.Sprint("v", len(asked)))
			_, _ = fmt.Fprintf(w, `{"page":%d}`, len(asked))
		case 2:
			w.WriteHeader(http.StatusNotModified)
		case 3:
			w.WriteHeader(http.StatusNoContent)
		case 5:
			w.WriteHeader(http.StatusTeapot)
		default:
			_, _ = io.WriteString(w, "the end")
		}
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	c := pollOf(server.URL + `/${! this.page.catch(0) }`)
	c.Body = `${! content() }`
	c.Headers = []streams.Header{{Name: "If-None-Match", Value: `${! (@etag).or("none") }`}}
	in := started(t, c, at, f)
	next(t, f.got)
	next(t, f.got)
	next(t, f.got)
	in.Stop(t.Context())
	want := []string{"/0 none ", `/1 v1 {"page":1}`, `/1 v1 {"page":1}`, `/1 v1 {"page":1}`, `/4 v4 {"page":4}`, `/4 v4 {"page":4}`}
	if !slices.Equal(asked[:6], want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if counts(at.State)[0] != '1' {
		t.Errorf("errors %s: an answer without a message counts", counts(at.State))
	}
}

func TestPollsThatGiveNoMessage(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"template": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "called") },
		"large":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 100)) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/other", http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, "followed")
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "garbage\n\n")
				_ = conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(serve)
			t.Cleanup(server.Close)
			at, _ := siteFor(t)
			f := newFlow(true)
			c := pollOf(server.URL)
			c.MaxResponseBytes = 99
			if name == "template" {
				c.Body = "${! this.x }"
			}
			started(t, c, at, f)
			eventually(t, "several failures", func() bool {
				return at.State.Errors[stream.Permanent].Load()+at.State.Errors[stream.Unknown].Load() > 2
			})
			if len(f.got) > 0 {
				t.Errorf("got %s", next(t, f.got).Body)
			}
		})
	}
}

func TestEmptyBodiesMayBeKept(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	c := pollOf(server.URL)
	c.DropEmptyBodies = false
	started(t, c, at, f)
	if one := next(t, f.got); len(one.Body) != 0 {
		t.Errorf("got %s", one.Body)
	}
}

// once answers one poll; the others get nothing.
func once(text string) http.HandlerFunc {
	var calls atomic.Int32
	return func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			_, _ = io.WriteString(w, text)
		}
	}
}

func TestAMessageThatCannotBeGivenOutComesAgain(t *testing.T) {
	server := httptest.NewServer(once("x"))
	t.Cleanup(server.Close)
	at, log := siteFor(t)
	f := newFlow(true)
	in := started(t, pollOf(server.URL), at, f).(*input)
	first := next(t, f.got)
	first.settle(errors.New("down"))
	second := next(t, f.got)
	if second.ID != first.ID || string(second.Body) != "x" || second.Attempt != 2 || at.State.Again.Load() != 1 {
		t.Errorf("%+v", second.Message)
	}
	second.settle(nil)
	if in.pass.again[second.Message] != nil || log.String() != "" {
		t.Errorf("it is to come again; log %s", log)
	}
}

func TestAMessageThatNoOutputTakesIsLoggedAsLost(t *testing.T) {
	server := httptest.NewServer(once("x"))
	t.Cleanup(server.Close)
	at, log := siteFor(t)
	f := newFlow(true)
	started(t, pollOf(server.URL), at, f)
	first := next(t, f.got)
	first.settle(stream.Failf(stream.Permanent, "no"))
	if !strings.Contains(log.String(), "lost") || !strings.Contains(log.String(), first.ID) || at.State.Errors[stream.Permanent].Load() != 1 {
		t.Errorf("log %s", log)
	}
}

// Messages that wait for another attempt are bounded: then nothing more is fetched.
func TestFailedMessagesAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	f := newFlow(true)
	in := started(t, pollOf(server.URL), at, f).(*input)
	ready := func() bool {
		for len(f.got) > 0 {
			one := <-f.got
			one.Attempt = 100 // the pause is long
			one.settle(errors.New("down"))
		}
		return in.pass.ready()
	}
	eventually(t, "the bound", func() bool { return !ready() })
	in.pass.mu.Lock()
	n := len(in.pass.again)
	in.pass.mu.Unlock()
	if n < at.MaxInFlight || n > at.MaxInFlight+1 { // one may have been on its way
		t.Errorf("%d messages wait", n)
	}
}

func TestStopEndsAPollThatHangs(t *testing.T) {
	arrived, over := make(chan struct{}, 9), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(server.Close)
	defer close(over)
	at, log := siteFor(t)
	in := started(t, pollOf(server.URL), at, newFlow(true))
	next(t, arrived)
	in.Stop(context.Background())
	if phase, _ := at.State.Phase(); phase != stream.Draining || log.String() != "" {
		t.Errorf("phase %s, log %s", phase, log)
	}
	noGoroutines(t)
}

func TestStopLeavesWhatWasNotTaken(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }))
	t.Cleanup(server.Close)
	at, log := siteFor(t)
	f := newFlow(true)
	f.full.Lock()
	in := started(t, pollOf(server.URL), at, f)
	next(t, f.asked)
	in.Stop(t.Context())
	f.full.Unlock()
	f.demand.Set(false)
	f.demand.Set(true)
	in.Close()
	if !strings.Contains(log.String(), "lost") || len(f.got) > 0 {
		t.Errorf("log %s, %d messages", log, len(f.got))
	}
}

func TestAnInputThatNeverStartedCanBeClosed(t *testing.T) {
	at, _ := siteFor(t)
	in, err := NewInput(pollOf("http://a"), at)
	if err != nil {
		t.Fatal(err)
	}
	in.Stop(t.Context())
	in.Close()
	if _, err := NewInput(pollOf("nowhere"), at); err == nil {
		t.Error("an input without an address")
	}
}
