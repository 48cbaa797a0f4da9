package targets

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

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
)

// checkResult is what a check came to.
type checkResult struct {
	Status int   // of the answer; 0: there was none
	Err    error // why there was none
}

// A task is the checks of one target. It begins with the target being well.
type task struct {
	check  definition.Check
	url    string
	client *http.Client
	turn   func(up bool, r checkResult)

	// Of the one check that is under way.
	down   bool
	streak int // results in a row that speak against down, or for it

	// Of the checker.
	at    time.Time
	place int  // in its queue, -1: not there
	busy  bool // a check is under way
	gone  bool
}

// newTask returns the task of checking one URL. It calls turn when the target becomes
// unhealthy, and when it is healthy again; turn must not wait. conf is for TLS and may
// be nil.
func newTask(check definition.Check, url string, conf *tls.Config, turn func(up bool, r checkResult)) *task {
	dialer := net.Dialer{ControlContext: dialguard.Policy{Private: true}.Control}
	if conf != nil {
		conf = conf.Clone()
		conf.NextProtos, conf.ClientSessionCache = nil, nil
	}
	return &task{
		check: check, url: url, turn: turn, place: -1,
		client: &http.Client{
			// Every check connects anew, as connecting is a part of what it checks.
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSClientConfig: conf, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// run makes one check.
func (t *task) run(ctx context.Context) {
	r := t.request(ctx)
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

func (t *task) expects(status int) bool {
	if len(t.check.Expected) > 0 {
		return slices.Contains(t.check.Expected, status)
	}
	return status >= 200 && status < 400
}

func (t *task) request(ctx context.Context) checkResult {
	ctx, cancel := context.WithTimeout(ctx, t.check.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, t.check.Method, t.url, bytes.NewReader(t.check.Body))
	if err != nil {
		return checkResult{Err: bare(err)}
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
		return checkResult{Err: bare(err)}
	}
	_ = resp.Body.Close() // only the head counts
	return checkResult{Status: resp.StatusCode}
}

// bare removes the URL from an error, as a URL may hold secrets.
func bare(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}
