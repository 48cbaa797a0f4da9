package health

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sluicegate/sluice/internal/definition/upstreams"
	"github.com/sluicegate/sluice/internal/guard"
)

// Result is what a check came to.
type Result struct {
	Status int   // of the answer; 0: there was none
	Err    error // why there was none
}

// A Task is the checks of one target. It begins with the target being well.
type Task struct {
	check  upstreams.Check
	url    string
	client *http.Client
	turn   func(up bool, r Result)

	// Of the one check that is under way.
	down   bool
	streak int // results in a row that speak against down, or for it

	// Of the checker.
	at    time.Time
	place int  // in its queue, -1: not there
	busy  bool // a check is under way
	gone  bool
}

// NewTask returns the task of checking one URL. turn is told when the target is
// not well any more, and when it is again; it must not wait. conf is for TLS and may
// be nil.
func NewTask(check upstreams.Check, url string, conf *tls.Config, turn func(up bool, r Result)) *Task {
	dialer := net.Dialer{ControlContext: guard.Policy{Private: true}.Control}
	if conf != nil {
		conf = conf.Clone()
		conf.NextProtos, conf.ClientSessionCache = nil, nil
	}
	return &Task{
		check: check, url: url, turn: turn, place: -1,
		client: &http.Client{
			// Every check connects anew: whether that works is a part of the question.
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: conf, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// run makes one check.
func (t *Task) run(ctx context.Context) {
	r := t.ask(ctx)
	if ctx.Err() != nil {
		return // the gateway stops, which says nothing about the target
	}
	good := r.Err == nil && t.expects(r.Status)
	if good == !t.down {
		t.streak = 0
		return
	}
	t.streak++
	if good && t.streak < t.check.Healthy || !good && t.streak < t.check.Unhealthy {
		return
	}
	t.down, t.streak = !good, 0
	t.turn(good, r)
}

func (t *Task) expects(status int) bool {
	if len(t.check.Expected) > 0 {
		return slices.Contains(t.check.Expected, status)
	}
	return status >= 200 && status < 400
}

func (t *Task) ask(ctx context.Context) Result {
	ctx, cancel := context.WithTimeout(ctx, t.check.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, t.check.Method, t.url, bytes.NewReader(t.check.Body))
	if err != nil {
		return Result{Err: bare(err)}
	}
	req.Header.Set("User-Agent", "sluice-health")
	for name, value := range t.check.Headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return Result{Err: bare(err)}
	}
	_ = resp.Body.Close() // its head says all
	return Result{Status: resp.StatusCode}
}

// bare takes the URL off an error, which may hold what is not for everybody.
func bare(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}
