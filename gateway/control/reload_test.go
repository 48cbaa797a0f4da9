package control

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestAReloadIsAnsweredAtOnceAndHappens(t *testing.T) {
	b := onFiles(t)
	b.write("weather.json", definitionOf("weather", ""))
	b.want("GET", "/svc/reload", "", 200, `{"status":"ok","message":""}`)
	wait.Until(t, "the API is live", func() bool { return b.live.API("weather") != nil })
	b.write("pets.json", definitionOf("pets", ""))
	b.want("GET", "/svc/reload/group?block=false", "", 200, `{"status":"ok","message":""}`)
	wait.Until(t, "the API is live", func() bool { return b.live.API("pets") != nil })
}

func TestABlockingReloadAnswersWhenItIsDone(t *testing.T) {
	for _, path := range []string{"/svc/reload?block=true", "/svc/reload/group?block=1"} {
		b := onFiles(t)
		b.write("weather.json", definitionOf("weather", ""))
		got := b.call("GET", path, "")
		if b.live.API("weather") == nil {
			t.Errorf("%s answered before the API was live", path)
		}
		if want := `{"status":"ok","message":"","Meta":{"revision":"` + b.live.Revision() + `"}}`; got.status != 200 || got.body != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestAReloadNamesWhatIsNotServedAsWritten(t *testing.T) {
	b := onFiles(t)
	b.write("weather.json", definitionOf("weather", ""))
	b.write("broken.json", `{"api_id":"broken","proxy":{}}`)
	got := b.call("GET", "/svc/reload?block=true", "")
	said := decoded[struct {
		Status, Message string
		Meta            revision
	}](t, got)
	if got.status != 200 || said.Status != "ok" || !strings.HasPrefix(said.Message, "Not everything is served as written: broken.json: ") ||
		!strings.Contains(said.Meta.Errors["broken.json"], "listen_path") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if b.live.API("weather") == nil {
		t.Error("the other API is not live")
	}
}

func TestAReloadThatCannotReadAnythingFails(t *testing.T) {
	b := onFiles(t)
	b.write("weather.json", definitionOf("weather", ""))
	b.reload()
	if err := os.Rename(b.apps, b.apps+".away"); err != nil {
		t.Fatal(err)
	}
	got := b.call("GET", "/svc/reload?block=true", "")
	if got.status != 500 || !strings.Contains(got.body, "Reload failed, what was in force stays: apps folder") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if b.live.API("weather") == nil {
		t.Error("the API is gone")
	}
}

func TestReloadsCloseTogetherAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began, done atomic.Int64
		r := newReloads(func(context.Context) error {
			began.Add(1)
			time.Sleep(100 * time.Millisecond)
			done.Add(1)
			return nil
		}, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		go r.run(ctx, slog.New(slog.DiscardHandler))
		r.schedule()
		synctest.Wait()
		for range 50 {
			r.schedule()
			go func() {
				if err := r.wait(ctx); err != nil || done.Load() != 2 {
					t.Errorf("%v after %d reloads", err, done.Load())
				}
			}()
		}
		time.Sleep(90 * time.Millisecond)
		if began.Load() != 1 {
			t.Errorf("%d reloads at a time", began.Load())
		}
		time.Sleep(time.Second)
		if began.Load() != 1 || done.Load() != 1 {
			t.Errorf("%d reloads in the first second", began.Load())
		}
		time.Sleep(time.Minute)
		if done.Load() != 2 {
			t.Errorf("%d reloads, want 2", done.Load())
		}
		cancel()
		synctest.Wait()
		if err := r.wait(t.Context()); !errors.Is(err, errStopping) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestAReloadThatTakesTooLongIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReloads(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.run(ctx, slog.New(slog.DiscardHandler))
		waiting, stop := context.WithTimeout(ctx, answerWithin)
		defer stop()
		err := r.wait(waiting)
		if e, ok := errors.AsType[*Error](err); !ok || e.Status != 503 {
			t.Errorf("got %v", err)
		}
	})
}

// group stands for gateways that share a store.
type group struct {
	told   atomic.Int64
	err    error
	watch  chan func()
	forget chan func(string)
	asked  chan string // APIs whose answers are to be forgotten
}

func (g *group) ReloadGroup(context.Context) error { g.told.Add(1); return g.err }

func (g *group) ForgetAnswers(_ context.Context, api string) error {
	g.asked <- api
	return g.err
}

func (g *group) Watch(ctx context.Context, reload func(), forget func(string)) {
	g.watch <- reload
	if g.forget != nil {
		g.forget <- forget
	}
	<-ctx.Done()
}

func TestAReloadOfTheGroupReachesTheOthersAndThisOne(t *testing.T) {
	g := &group{watch: make(chan func(), 1), asked: make(chan string, 1)}
	b := onFiles(t, func(d *Deps) { d.Group = g })
	b.write("weather.json", definitionOf("weather", ""))
	if got := b.call("GET", "/svc/reload/group?block=true", ""); got.status != 200 || b.live.API("weather") == nil || g.told.Load() != 1 {
		t.Errorf("%d %s, %d told", got.status, got.body, g.told.Load())
	}
	b.write("pets.json", definitionOf("pets", ""))
	(<-g.watch)() // another gateway told us
	wait.Until(t, "the API is live", func() bool { return b.live.API("pets") != nil })
	b.want("GET", "/svc/reload", "", 200, `{"status":"ok","message":""}`)
	if g.told.Load() != 1 {
		t.Error("a reload of this gateway reached the others")
	}
	g.err = errors.New("store 10.0.0.1 is away")
	got := b.want("GET", "/svc/reload/group", "", 503, failed("The gateways of the group could not be told to reload"))
	if got.header.Get("Retry-After") != "1" || !strings.Contains(b.log.String(), "10.0.0.1") {
		t.Errorf("headers %v, log %s", got.header, b.log)
	}
}

// invalidated notes whose answers were forgotten.
type invalidated chan string

func (f invalidated) Invalidate(api string) { f <- api }

func TestCachedResponsesAreDroppedByAllGatewaysOfAGroup(t *testing.T) {
	g := &group{watch: make(chan func(), 1), forget: make(chan func(string), 1), asked: make(chan string, 1)}
	here := make(invalidated, 1)
	b := onFiles(t, func(d *Deps) { d.Group, d.Answers = g, here })
	b.write("weather.json", definitionOf("weather", ""))
	b.call("GET", "/svc/reload?block=true", "")
	b.want("DELETE", "/svc/cache/weather", "", 200, `{"status":"ok","message":"cache invalidated"}`)
	if first, told := <-here, <-g.asked; first != "weather" || told != "weather" {
		t.Errorf("%q here, %q told", first, told)
	}
	told := <-g.forget
	for _, api := range []string{"weather", ""} { // another gateway was asked; something may have been missed
		told(api)
		if got := <-here; got != api {
			t.Errorf("%q is forgotten, not %q", got, api)
		}
	}
	b.want("DELETE", "/svc/cache/nothing", "", 404, failed("API not found"))
	g.err = errors.New("store 10.0.0.1 is away")
	got := b.call("DELETE", "/svc/cache/weather", "")
	if got.status != 500 || !strings.Contains(got.body, `"Cache invalidation failed: `) || strings.Contains(got.body, "10.0.0.1") || <-here != "weather" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
