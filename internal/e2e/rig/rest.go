package rig

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// LetterTo waits for a letter of a kind to an address in the mailbox, removes it and
// returns its text.
func (r *Rest) LetterTo(address, kind string) string {
	r.T.Helper()
	var text string
	Eventually(r.T, kind+" to "+address, func() error {
		var list struct {
			Data []struct{ ID, Kind string }
		}
		r.Do(http.MethodGet, "/api/portal/mailbox?q="+url.QueryEscape(address), nil).Into(r.T, &list)
		for _, one := range list.Data {
			if one.Kind == kind {
				var letter struct{ Text string }
				r.Do(http.MethodGet, "/api/portal/mailbox/"+one.ID, nil).Into(r.T, &letter)
				text = letter.Text
				r.Do(http.MethodDelete, "/api/portal/mailbox/"+one.ID, nil)
				return nil
			}
		}
		return errors.New("none")
	})
	return text
}

// Expect makes one call and fails the test unless the answer has a status and some
// texts in its body.
func (r *Rest) Expect(want int, method, path string, body any, parts ...string) Answer {
	r.T.Helper()
	got, err := r.Try(method, path, body)
	if err != nil || got.Status != want {
		r.T.Fatalf("%s %s: %v %s, want %d", method, path, err, got, want)
	}
	for _, part := range parts {
		if !strings.Contains(got.Body, part) {
			r.T.Errorf("%s %s: %q is not in %s", method, path, part, got)
		}
	}
	return got
}

// A UsageReport is the answer of GET /api/usage.
type UsageReport struct {
	Totals struct{ Hits, Errors int64 } `json:"totals"`
	Data   []struct {
		API    string   `json:"api_id"`
		Key    string   `json:"key"`
		Status int      `json:"status"`
		Reason string   `json:"reason"`
		Hits   int64    `json:"hits"`
		P50    *float64 `json:"p50_ms"`
	}
}

// Usage returns the report at a path.
func (r *Rest) Usage(path string) (u UsageReport) {
	r.T.Helper()
	r.Do("GET", path, nil).Into(r.T, &u)
	return u
}

// An Explanation is the answer of an explain call.
type Explanation struct {
	Revision string
	Steps    []struct {
		Stage, Result, Said string
		Facts               []struct{ Rule, Value, Seen, From string }
	}
	Outcome struct {
		Allowed             bool
		Status              int
		Reason, Stage, Body string
		Upstream            *struct{ Method, Target string }
	}
	Refusal *struct {
		Stage, Reason, Path, Key string
		Status                   int
	}
}

// Said returns the text of a stage, "" if it did not run.
func (e *Explanation) Said(stage string) string {
	for _, s := range e.Steps {
		if s.Stage == stage {
			return s.Said
		}
	}
	return ""
}
