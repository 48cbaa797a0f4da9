package targets

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// target answers checks with a status, or with none at all.
type checkedTarget struct {
	*httptest.Server
	status atomic.Int64
	asked  atomic.Int64
}

func newTarget(t *testing.T) *checkedTarget {
	o := &checkedTarget{}
	o.status.Store(200)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.asked.Add(1)
		if r.URL.Path != "/health" || r.Header.Get("X-Probe") != "1" {
			w.WriteHeader(404)
			return
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(o.status.Load()))
	}))
	t.Cleanup(o.Close)
	return o
}

func quick(change func(*definition.Check)) definition.Check {
	c := definition.Check{
		Method: "GET", Headers: map[string]string{"X-Probe": "1"},
		Interval: 2 * time.Millisecond, Timeout: 30 * time.Second, Healthy: 2, Unhealthy: 3,
	}
	if change != nil {
		change(&c)
	}
	return c
}

type turn struct {
	up bool
	r  checkResult
}

// start runs checks of a URL until the test ends, and returns what they find.
func start(t *testing.T, check definition.Check, url string) (*checker, *task, chan turn) {
	turns := make(chan turn, 100)
	c := newChecker()
	task := newTask(check, url, nil, func(up bool, r checkResult) { turns <- turn{up, r} })
	c.Add(task)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, task, turns
}

func expect(t *testing.T, turns chan turn, up bool) checkResult {
	t.Helper()
	select {
	case got := <-turns:
		if got.up != up {
			t.Fatalf("up: %t, want %t (%+v)", got.up, up, got.r)
		}
		return got.r
	case <-time.After(60 * time.Second):
		t.Fatalf("nobody said up: %t", up)
	}
	return checkResult{}
}

func TestATargetThatFailsIsDownAndThenUpAgain(t *testing.T) {
	o := newTarget(t)
	_, _, turns := start(t, quick(nil), o.URL+"/health")
	o.status.Store(503)
	if r := expect(t, turns, false); r.Status != 503 || r.Err != nil {
		t.Errorf("result %+v", r)
	}
	o.status.Store(302) // a redirection is an answer, and not followed
	if r := expect(t, turns, true); r.Status != 302 {
		t.Errorf("result %+v", r)
	}
}

func TestOnlyTheStatusesExpectedAreGood(t *testing.T) {
	o := newTarget(t)
	_, _, turns := start(t, quick(func(c *definition.Check) { c.Expected = []int{418} }), o.URL+"/health")
	expect(t, turns, false)
	o.status.Store(418)
	expect(t, turns, true)
}

func TestATargetThatCannotBeReachedIsDown(t *testing.T) {
	o := newTarget(t)
	o.Close()
	_, _, turns := start(t, quick(nil), o.URL+"/health?secret=1")
	r := expect(t, turns, false)
	if r.Err == nil || strings.Contains(r.Err.Error(), "secret") {
		t.Errorf("result %+v", r)
	}
}

func TestMetadataAddressesAreNotAsked(t *testing.T) {
	_, _, turns := start(t, quick(nil), "http://169.254.169.254/")
	if r := expect(t, turns, false); r.Err == nil || !strings.Contains(r.Err.Error(), "never called") {
		t.Errorf("result %+v", r)
	}
}

func TestASlowTargetIsDown(t *testing.T) {
	block := make(chan struct{})
	o := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-block:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(o.Close)
	t.Cleanup(func() { close(block) })
	_, _, turns := start(t, quick(func(c *definition.Check) { c.Timeout = 5 * time.Millisecond }), o.URL)
	if r := expect(t, turns, false); r.Err == nil {
		t.Errorf("result %+v", r)
	}
}

func TestATaskThatIsRemovedIsNotAskedAgain(t *testing.T) {
	o := newTarget(t)
	c, task, _ := start(t, quick(nil), o.URL+"/health")
	wait.Until(t, "the state that the test expects", func() bool { return o.asked.Load() > 2 })
	c.Remove(task)
	wait.Until(t, "the state that the test expects", func() bool { return len(c.slots) == 0 })
	asked := o.asked.Load()
	other := newTarget(t)
	c.Add(newTask(quick(nil), other.URL+"/health", nil, func(bool, checkResult) {}))
	wait.Until(t, "the state that the test expects", func() bool { return other.asked.Load() > 3 })
	if now := o.asked.Load(); now != asked {
		t.Errorf("%d more checks", now-asked)
	}
	c.Add(task)
	wait.Until(t, "the state that the test expects", func() bool { return o.asked.Load() > asked })
}

func TestATaskThatIsRemovedDuringItsCheckIsNotQueuedAgain(t *testing.T) {
	began, end := make(chan struct{}, 10), make(chan struct{})
	o := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-end
	}))
	t.Cleanup(o.Close)
	c, task, _ := start(t, quick(nil), o.URL)
	<-began
	c.Remove(task)
	end <- struct{}{}
	wait.Until(t, "the state that the test expects", func() bool { return len(c.slots) == 0 })
	if n := c.Len(); n != 0 {
		t.Errorf("%d tasks wait", n)
	}
	c.Add(task)
	<-began
	c.Remove(task)
	c.Add(task) // while it is under way
	end <- struct{}{}
	<-began
	c.mu.Lock()
	if n := len(c.due); n > 1 {
		t.Errorf("%d tasks wait", n)
	}
	c.mu.Unlock()
	close(end)
}

// A definition may leave and come back while its target keeps a check waiting.
func TestATaskThatComesBackDuringItsCheckIsNotAskedTwiceAtOnce(t *testing.T) {
	asked, release := make(chan struct{}, 10), make(chan struct{})
	o := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer o.Close()
	c, task, _ := start(t, quick(func(c *definition.Check) { c.Timeout = time.Minute }), o.URL)
	<-asked
	c.Remove(task)
	c.Add(task)
	if n := c.Len(); n != 0 {
		t.Errorf("%d tasks wait beside the one whose check is under way", n)
	}
	close(release)
	<-asked // and then again
}

func TestChecksOfManyTargetsAreSpreadAndBounded(t *testing.T) {
	c := newChecker()
	for range 1000 {
		c.Add(newTask(definition.Check{Interval: time.Hour}, "http://127.0.0.1:1/", nil, func(bool, checkResult) {}))
	}
	if task, wait := c.next(time.Now()); task != nil || wait > 10*time.Minute {
		t.Errorf("the first of them is due in %v: %v", wait, task)
	}
	before := time.Now()
	for range 1000 {
		task, _ := c.next(before.Add(2 * time.Hour))
		if task == nil {
			t.Fatal("a task is lost")
		}
	}
	if c.Len() != 0 || cap(c.slots) != atOnce {
		t.Errorf("%d left", c.Len())
	}
}
