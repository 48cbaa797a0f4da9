package admin

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// answers stands for what explains: it answers with what it is asked, or errs.
type answers struct{ err error }

func (a answers) Explain(_ context.Context, org string, description []byte) (any, error) {
	return map[string]string{"asked": string(description), "org": org}, a.err
}

func TestRequestsAreExplained(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{nil, 200, `"asked":"{\"url\":\"/x\"}"`},
		{&definition.Problems{{Path: "url", Message: "names no host"}}, 400, "url: names no host"},
		{fmt.Errorf("revision 9: %w", store.ErrNotFound), 404, "revision 9"},
	} {
		b := start(t, func(d *Deps) { d.Explain = answers{c.err} })
		for _, key := range []string{b.viewer, b.editor, b.admin} {
			b.Call("POST", "/api/explain", key, `{"url":"/x"}`).Want(c.status).Says(c.says)
		}
		b.Call("POST", "/api/explain", b.robot, `{"url":"/x"}`).Want(403)
		b.Call("POST", "/api/explain", "", `{"url":"/x"}`).Want(401)
		b.Call("POST", "/api/explain", b.viewer, ``).Want(400)
		own, other := b.Call("POST", "/api/explain", b.admin, `{}`), b.Call("POST", "/api/explain", b.other, `{}`)
		if c.err == nil && own.Text("org") == other.Text("org") {
			t.Error("two organisations are told apart by nothing")
		}
	}
	b := start(t)
	b.Call("POST", "/api/explain", b.viewer, `{"url":"/x"}`).Want(404).Says("does not explain")
}

// slow explains nothing until it is let go.
type slow struct{ began, let chan struct{} }

func (s slow) Explain(context.Context, string, []byte) (any, error) {
	s.began <- struct{}{}
	<-s.let
	return map[string]string{}, nil
}

func TestFewRequestsAreExplainedAtATime(t *testing.T) {
	s := slow{make(chan struct{}), make(chan struct{})}
	b := start(t, func(d *Deps) { d.Explain = s })
	statuses := make(chan int, maxExplained)
	for range maxExplained {
		go func() { statuses <- b.Call("POST", "/api/explain", b.viewer, `{}`).Status }()
		<-s.began
	}
	r := b.Call("POST", "/api/explain", b.viewer, `{}`)
	r.Want(503).Says("Too many requests are being explained")
	if r.Header.Get("Retry-After") != "1" {
		t.Errorf("%v", r.Header)
	}
	close(s.let)
	for range maxExplained {
		if status := <-statuses; status != 200 {
			t.Errorf("status %d", status)
		}
	}
}
