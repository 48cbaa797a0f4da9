package control

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// answers stands for what explains: it answers with what it is asked, or errs.
type answers struct{ err error }

func (a answers) Explain(_ context.Context, description []byte) (any, error) {
	return map[string]string{"asked": string(description)}, a.err
}

func TestRequestsAreExplained(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"explained", nil, 200, `{"asked":"{\"url\":\"/x\"}"}`},
		{
			"at fault", &definition.Problems{{Path: "url", Message: "names no host"}}, 400,
			`{"status":"error","message":"Validation of the request's description failed. Reason: url: names no host.","errors":[{"path":"url","message":"names no host"}]}`,
		},
		{"not known", ErrNotFound, 404, `"message":"This gateway remembers no refused request with this id`},
		{"broken", errors.New("no"), 500, `"message":"Internal error`},
	} {
		b := onFiles(t, func(d *Deps) { d.Explain = answers{c.err} })
		got := b.call("POST", "/svc/explain", `{"url":"/x"}`)
		if got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.name, got.status, got.body, c.status, c.want)
		}
	}
}

func TestExplanationsCanBeOff(t *testing.T) {
	b := onFiles(t, func(d *Deps) { d.Explain = nil })
	b.want("POST", "/svc/explain", `{}`, 404, failed("This gateway does not explain requests"))
}

// slow explains nothing until it is let go.
type slow struct{ began, let chan struct{} }

func (s slow) Explain(context.Context, []byte) (any, error) {
	s.began <- struct{}{}
	<-s.let
	return map[string]string{}, nil
}

func TestFewRequestsAreExplainedAtATime(t *testing.T) {
	s := slow{make(chan struct{}), make(chan struct{})}
	b := onFiles(t, func(d *Deps) { d.Explain = s })
	statuses := make(chan int, maxExplained)
	for range maxExplained {
		go func() { statuses <- b.call("POST", "/svc/explain", `{}`).status }()
		<-s.began
	}
	got := b.call("POST", "/svc/explain", `{}`)
	if got.status != 503 || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "Too many requests are being explained") {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	close(s.let)
	for range maxExplained {
		if status := <-statuses; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	go func() { <-s.began }()
	if got := b.call("POST", "/svc/explain", `{}`); got.status != 200 {
		t.Errorf("%d %s after the others", got.status, got.body)
	}
}
