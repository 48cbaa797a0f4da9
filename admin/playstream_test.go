package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A livePlayer runs subscriptions as a test says.
type livePlayer struct {
	fakePlayer
	run func(ctx context.Context, call *PlayedCall) (*PlayedAnswer, error)
}

func (p *livePlayer) Play(ctx context.Context, call *PlayedCall) (*PlayedAnswer, error) {
	if call.Live == nil {
		return p.fakePlayer.Play(ctx, call)
	}
	return p.run(ctx, call)
}

var begun = PlayedAnswer{Sent: true, Status: 200, RequestID: "4bf9", Report: json.RawMessage(`{"steps":[],"outcome":{"allowed":true}}`)}

// startStreams has an API whose subscriptions run does.
func startStreams(t *testing.T, run func(context.Context, *PlayedCall) (*PlayedAnswer, error)) *bench {
	p := &livePlayer{run: run}
	b := start(t, func(d *Deps) { d.Play, d.Try, d.KeyOptions.Passwords = p, p, passwords() })
	b.createAPI(b.editor, "a", "/a/")
	return b
}

const asked = `{"body":"{}","stream":true,"headers":{"accept":"text/plain"}}`

// post calls the playground.
func post(ctx context.Context, b *bench, who string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", b.URL+"/api/apis/a/playground", strings.NewReader(asked))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", who)
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// lines calls the playground and returns the lines of the answer as they come.
func lines(t *testing.T, b *bench, who string) (next func() string, leave func()) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	answer, err := post(ctx, b, who)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(); _ = answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("%d %s", answer.StatusCode, kind)
	}
	from := bufio.NewScanner(answer.Body)
	return func() string {
		for from.Scan() {
			if line := from.Text(); line != "" && line != ":" {
				return line
			}
		}
		return ""
	}, leave
}

// whole calls the playground as a viewer and returns all events.
func whole(t *testing.T, b *bench) string {
	t.Helper()
	answer, err := post(t.Context(), b, b.viewer)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%d %s %v", answer.StatusCode, text, err)
	}
	return string(text)
}

func TestASubscriptionIsAnsweredWithItsEvents(t *testing.T) {
	var described map[string]any
	b := startStreams(t, func(_ context.Context, call *PlayedCall) (*PlayedAnswer, error) {
		if err := json.Unmarshal(call.Description, &described); err != nil {
			return nil, err
		}
		call.Live.Begin(&begun)
		call.Live.Next([]byte("{\"a\":\r\n1}"))
		call.Live.Complete()
		call.Live.Next([]byte(`{"late":1}`))
		return &begun, nil
	})
	got := whole(t, b)
	for _, want := range []string{"event: open\ndata: {\"sent\":true,\"status\":200,", `"request_id":"4bf9"`, "\n\nevent: next\ndata: {\"a\":\ndata: 1}\n\nevent: complete\ndata: {}\n\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s does not have %q", got, want)
		}
	}
	if strings.Contains(got, "late") {
		t.Errorf("%s goes on behind its end", got)
	}
	if got, want := fmt.Sprint(described["headers"]), fmt.Sprint(map[string]any{"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}); got != want {
		t.Errorf("headers %s, want %s", got, want)
	}
}

func TestASubscriptionThatIsRefusedIsAnsweredAsACall(t *testing.T) {
	refused := begun
	refused.Status, refused.Report = 400, json.RawMessage(`{"steps":[],"outcome":{"allowed":false,"reason":"depth_limit"}}`)
	var err error
	b := startStreams(t, func(context.Context, *PlayedCall) (*PlayedAnswer, error) { return &refused, err })
	b.Call("POST", "/api/apis/a/playground", b.viewer, asked).Want(200).Says(`"status":400`, `"reason":"depth_limit"`)
	err = errors.New("no plugh")
	if got := b.Call("POST", "/api/apis/a/playground", b.viewer, asked).Want(500); strings.Contains(string(got.Body), "plugh") {
		t.Errorf("%s", got.Body)
	}
	if !strings.Contains(b.log.String(), "plugh") {
		t.Error("the log does not have the cause")
	}
	b.Call("POST", "/api/apis/a/playground", b.viewer, `{"as":{"policy":"x"},"stream":true}`).Want(403)
}

func TestHowSubscriptionsEnd(t *testing.T) {
	var run func(context.Context, *PlayedCall) error
	b := startStreams(t, func(ctx context.Context, call *PlayedCall) (*PlayedAnswer, error) {
		call.Live.Begin(&begun)
		return &begun, run(ctx, call)
	})
	for _, c := range []struct {
		says string
		run  func(context.Context, *PlayedCall) error
	}{
		{`event: error data: [{"message":"no"}]`, func(_ context.Context, call *PlayedCall) error {
			call.Live.Fail([]byte(`[{"message":"no"}]`))
			return nil
		}},
		{`event: closed data: {"reason":"not any more"}`, func(context.Context, *PlayedCall) error { return fmt.Errorf("ended: %w", PlayedEnd("not any more")) }},
		{`event: closed data: {"reason":"The subscription failed; `, func(context.Context, *PlayedCall) error { return errors.New("internal") }},
		{`event: closed data: {"reason":"The subscription failed;`, func(context.Context, *PlayedCall) error { panic("internal") }},
		{`event: closed data: {"reason":"The subscription has ended without`, func(context.Context, *PlayedCall) error { return nil }},
		{`event: closed data: {"reason":"The page does not read`, func(ctx context.Context, call *PlayedCall) error {
			call.Live.Next([]byte(`{"a":"` + strings.Repeat("x", maxUnread) + `"}`))
			<-ctx.Done()
			return context.Cause(ctx)
		}},
	} {
		run = c.run
		got := strings.Join(strings.Fields(whole(t, b)), " ")
		if !strings.Contains(got, c.says) || strings.Contains(got, "internal") {
			t.Errorf("%.200s does not have %s", got, c.says)
		}
	}
}

// waits runs a subscription until it is ended, and reports why.
func waits(ended chan<- error) func(context.Context, *PlayedCall) (*PlayedAnswer, error) {
	return func(ctx context.Context, call *PlayedCall) (*PlayedAnswer, error) {
		call.Live.Begin(&begun)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}
}

func TestASubscriptionEndsWithItsPage(t *testing.T) {
	ended := make(chan error, 1)
	b := startStreams(t, waits(ended))
	next, leave := lines(t, b, b.viewer)
	next()
	leave()
	if why := <-ended; why != endLeft {
		t.Errorf("ended for %v", why)
	}
}

func TestASubscriptionEndsWithTheUser(t *testing.T) {
	ended := make(chan error, 1)
	b := startStreams(t, waits(ended))
	next, _ := lines(t, b, b.viewer)
	next()
	b.Call("DELETE", "/api/users/"+b.Text("select id from users where role = 'viewer'"), b.admin, "").Want(200)
	if why := <-ended; why != endBarred {
		t.Errorf("ended for %v", why)
	}
	for line := next(); line != ""; line = next() {
		if strings.Contains(line, string(endBarred)) {
			return
		}
	}
	t.Error("the page does not learn why")
}

func TestSubscriptionsAreBoundedByCaller(t *testing.T) {
	ended := make(chan error, 2*maxStreamedBy)
	b := startStreams(t, waits(ended))
	var leave func()
	for range maxStreamedBy {
		var next func() string
		next, leave = lines(t, b, b.viewer)
		next()
	}
	b.Call("POST", "/api/apis/a/playground", b.viewer, asked).Want(503).Says("Too many subscriptions")
	leave()
	<-ended
	for { // until there is room for another
		answer, err := post(t.Context(), b, b.viewer)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode == 200 {
			return
		}
	}
}

func TestCallersAreBoundedTogether(t *testing.T) {
	u := newUnderWay(2, 1)
	first, ok := u.enter("a")
	if !ok {
		t.Fatal("the first is refused")
	}
	if _, ok := u.enter("a"); ok {
		t.Error("a second of one caller is admitted")
	}
	if _, ok := u.enter("b"); !ok {
		t.Error("another caller is refused")
	}
	if _, ok := u.enter("c"); ok {
		t.Error("a third of all is admitted")
	}
	first()
	if _, ok := u.enter("c"); !ok {
		t.Error("there is room, and the caller is refused")
	}
	if len(u.under) != 2 {
		t.Errorf("%v are remembered", u.under)
	}
}

func TestShutdownEndsSubscriptions(t *testing.T) {
	ended := make(chan error, 1)
	b := startStreams(t, waits(ended))
	next, _ := lines(t, b, b.viewer)
	next()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if why := <-ended; why != endStop {
		t.Errorf("ended for %v", why)
	}
}
