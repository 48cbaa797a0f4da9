package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Health is the state of a part of the gateway.
type Health string

// The states.
const (
	Pass Health = "pass"
	Warn Health = "warn" // the gateway serves, perhaps from its caches
	Fail Health = "fail" // the gateway cannot serve
)

// worse returns the worse of two states.
func (h Health) worse(other Health) Health {
	if h == Fail || other == Fail {
		return Fail
	}
	if h == Warn || other == Warn {
		return Warn
	}
	return Pass
}

// A Component is something that a gateway needs in order to serve.
type Component struct {
	Name string // such as key_store
	Kind string // such as datastore

	// Check returns the state of the component, and a reason unless it passes. The text
	// is public: it must not contain addresses or ids. Check must return soon after ctx
	// ends.
	Check func(ctx context.Context) (Health, string)
}

// finding is a component's entry in /hello.
type finding struct {
	Status        Health `json:"status"`
	ComponentType string `json:"componentType"`
	Output        string `json:"output,omitempty"`
	Time          string `json:"time"`
}

// report is the response of /hello.
type report struct {
	Status      Health             `json:"status"`
	Version     string             `json:"version"`
	Description string             `json:"description"`
	Details     map[string]finding `json:"details"`
}

// Limits of checks, which are not authenticated.
const (
	checkWithin = time.Second // then the check fails
	checkEvery  = time.Second // in between, callers get the last findings
)

// health caches findings, so that frequent callers cost the components nothing.
type health struct {
	components []Component

	mu      sync.Mutex
	at      time.Time
	details map[string]finding
	overall Health
}

func newHealth(components []Component) *health { return &health{components: components} }

// check returns findings that are at most checkEvery old.
func (h *health) check() (Health, map[string]finding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.details == nil || time.Since(h.at) >= checkEvery {
		h.overall, h.details = h.ask()
		h.at = time.Now()
	}
	return h.overall, h.details
}

func (h *health) ask() (Health, map[string]finding) {
	ctx, cancel := context.WithTimeout(context.Background(), checkWithin)
	defer cancel()
	found := make([]finding, len(h.components))
	var all sync.WaitGroup
	for i, c := range h.components {
		all.Go(func() {
			status, output := c.Check(ctx)
			found[i] = finding{Status: status, ComponentType: c.Kind, Output: output, Time: time.Now().UTC().Format(time.RFC3339)}
		})
	}
	all.Wait()
	overall, details := Pass, make(map[string]finding, len(found))
	for i, f := range found {
		overall = overall.worse(f.Status)
		details[h.components[i].Name] = f
	}
	return overall, details
}

// configuration returns the component that every gateway has.
func (a *API) configuration() Component {
	return Component{Name: "configuration", Kind: "system", Check: func(context.Context) (Health, string) {
		origin := a.deps.Live.Origin()
		if a.deps.Live.Revision() == "" {
			return Fail, because("no configuration was loaded yet", origin.Trouble)
		}
		text := fmt.Sprintf("from %s, in force for %s", origin.Source, time.Since(origin.Since).Round(time.Second))
		switch failed := len(a.deps.Live.Failed()); {
		case failed > 0:
			return Warn, fmt.Sprintf("%s; %d definitions are not served as written", text, failed)
		case origin.Stale:
			return Warn, text + "; " + cmp.Or(origin.Trouble, "its source is away")
		}
		return Pass, text
	}}
}

// because adds a cause, which may be "".
func because(text, cause string) string {
	if cause == "" {
		return text
	}
	return text + ": " + cause
}

// hello reports how the parts of the gateway are. The status is always 200.
func (a *API) hello(rc *fasthttp.RequestCtx) { a.report(rc, false) }

// healthy is hello with the status of ready.
func (a *API) healthy(rc *fasthttp.RequestCtx) { a.report(rc, true) }

func (a *API) report(rc *fasthttp.RequestCtx, decides bool) {
	overall, details := a.health.check()
	status := fasthttp.StatusOK
	if decides && (overall == Fail || a.stopping()) {
		status = fasthttp.StatusServiceUnavailable
	}
	a.answer(rc, status, &report{
		Status: overall, Version: a.deps.Version, Description: "Sluice gateway", Details: details,
	})
}

func (a *API) stopping() bool { return a.deps.Stopping != nil && a.deps.Stopping() }

func (a *API) ready(rc *fasthttp.RequestCtx) {
	if a.stopping() {
		a.answer(rc, fasthttp.StatusServiceUnavailable, &outcome{Status: "error", Message: "not ready; the gateway stops"})
		return
	}
	overall, details := a.health.check()
	if overall != Fail {
		a.answer(rc, fasthttp.StatusOK, &outcome{Status: "ok", Message: "ready"})
		return
	}
	var message strings.Builder
	message.WriteString("not ready")
	for _, c := range a.health.components {
		if f := details[c.Name]; f.Status == Fail {
			message.WriteString("; " + c.Name + ": " + f.Output)
		}
	}
	a.answer(rc, fasthttp.StatusServiceUnavailable, &outcome{Status: "error", Message: message.String()})
}

func (a *API) live(rc *fasthttp.RequestCtx) {
	a.answer(rc, fasthttp.StatusOK, &outcome{Status: "ok", Message: "alive"})
}
