package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// compiled compiles an API as the gateway does.
func compiled(t testing.TB, e *Engine, def *definition.API) *pipeline.API {
	t.Helper()
	s, err := e.Compile(def)
	if err != nil {
		t.Fatal(err)
	}
	return &pipeline.API{Definition: def, Version: &pipeline.Version{Forward: s, Upstream: s}}
}

const (
	same    = `"same": {"input": {"http_server": {"path": "/same"}}, "output": {"msgbroker": {"addresses": ["inproc://"], "topic": "t"}}}`
	before  = `"other": {"input": {"http_server": {"path": "/before"}}, "output": {"msgbroker": {"addresses": ["inproc://"], "topic": "t"}}}`
	changed = `"other": {"input": {"http_server": {"path": "/after"}}, "output": {"msgbroker": {"addresses": ["inproc://"], "topic": "t"}}}`
)

func TestAChangeTouchesOnlyTheStreamsThatItConcerns(t *testing.T) {
	e := newEngine(t)
	first := compiled(t, e, apiOf(t, `{`+same+`, `+before+`}`))
	e.Swap([]*pipeline.API{first}, nil)
	second := compiled(t, e, apiOf(t, `{`+same+`, `+changed+`}`))
	e.Swap([]*pipeline.API{second}, []*pipeline.API{first})
	was, is := streamsOf(first), streamsOf(second)
	if was[1] != is[1] || was[0] == is[0] {
		t.Fatal("not the stream that was changed is a new one")
	}
	if s := is[1].status(false); s.Phase == streamstate.Draining || s.Phase == streamstate.Stopped {
		t.Errorf("the stream that was not changed is %s", s.Phase)
	}
	e.draining.Wait()
	if s := was[0].status(false); s.Phase != streamstate.Stopped {
		t.Errorf("the stream that was replaced is %s", s.Phase)
	}
	e.Swap(nil, []*pipeline.API{second})
	e.draining.Wait()
	if n := len(e.Streams(streamstate.Filter{})); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	e := newEngine(t)
	e.maxStreams = 1
	e.Swap([]*pipeline.API{compiled(t, e, apiOf(t, `{`+same+`}`))}, nil)
	_, err := e.Compile(apiOf(t, `{`+same+`, `+before+`}`))
	if err == nil || !strings.Contains(err.Error(), "streaming.max_streams") {
		t.Error(err)
	}
}

// TestStreamsAreBoundedBeforeTheyEnterService: APIs are compiled one after the other, and
// enter service together.
func TestStreamsAreBoundedBeforeTheyEnterService(t *testing.T) {
	e := newEngine(t)
	e.maxStreams = 2
	first := compiled(t, e, apiOf(t, `{`+same+`, `+before+`}`))
	other := apiOf(t, `{`+same+`}`)
	other.ID = "b"
	if _, err := e.Compile(other); err == nil || !strings.Contains(err.Error(), "streaming.max_streams") {
		t.Error(err)
	}
	e.Swap([]*pipeline.API{first}, nil)
	if _, err := e.Compile(other); err == nil {
		t.Error("one more was compiled")
	}
	e.Swap([]*pipeline.API{compiled(t, e, apiOf(t, `{`+same+`}`))}, []*pipeline.API{first})
	if _, err := e.Compile(other); err != nil {
		t.Error(err)
	}
}

func TestAnEngineThatNothingUsesHasNothingOpen(t *testing.T) {
	e := New(Options{MaxStreams: 1, MaxBytes: 1})
	if err := e.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRequestsFindTheirRoute(t *testing.T) {
	e := newEngine(t)
	api := compiled(t, e, apiOf(t, `{
		"in": {"input": {"http_server": {"path": "/orders/{id}", "allowed_verbs": ["POST", "PUT"]}}, "output": `+outside+`},
		"exact": {"input": {"http_server": {"path": "/orders/all", "allowed_verbs": ["DELETE"]}}, "output": `+outside+`},
		"out": {"input": `+inside+`, "output": {"http_server": {"path": "/feed"}}},
		"socket": {"input": `+inside+`, "output": {"websocket_server": {"path": "/live"}}}}`))
	stage := api.Version.Forward.(*Stage)
	const handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	for _, c := range []struct {
		method, path, lines string
		stream              string // "": refused
		status              int
		allow               string
	}{
		{"POST", "/orders/7", "", "in", 0, ""},
		{"PUT", "/orders/7", "", "in", 0, ""},
		{"DELETE", "/orders/all", "", "exact", 0, ""},
		{"POST", "/orders/all", "", "", 405, "DELETE"}, // the exact path wins
		{"GET", "/orders/7", "", "", 405, "POST, PUT"},
		{"POST", "/orders", "", "", 404, ""},
		{"POST", "/orders/", "", "", 404, ""},
		{"POST", "/orders/7/8", "", "", 404, ""},
		{"GET", "/feed", "", "out", 0, ""},
		{"HEAD", "/feed", "", "out", 0, ""},
		{"GET", "/feed", handshake, "out", 0, ""},
		{"GET", "/feed", "Connection: close\r\nUpgrade: websocket\r\n", "out", 0, ""},
		{"GET", "/live", handshake, "socket", 0, ""},
		{"GET", "/live", "", "", 426, ""},
		{"POST", "/live", handshake, "", 426, ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			call := &wire.Call{Method: []byte(c.method)}
			call.SetLines([]byte(c.lines))
			ex := pipeline.For(call)
			defer ex.Release()
			ex.Path = []byte(c.path)
			route, values, refused := stage.find(ex)
			switch {
			case c.stream == "" && (refused == nil || refused.Status != c.status || refused.Allow != c.allow):
				t.Errorf("refused with %+v", refused)
			case c.stream != "" && (refused != nil || route.run.conf.Name != c.stream):
				t.Errorf("refused with %+v", refused)
			case c.stream == "in" && (len(values) != 1 || values[0].Name != "id" || values[0].Value != "7"):
				t.Errorf("parameters %v", values)
			}
			f := pipeline.Finding{}
			stage.Explain(ex, &f)
			if f.Said == "" || (f.Fix == "") != (c.stream != "") {
				t.Errorf("explained as %+v", f)
			}
		})
	}
}

func TestPathsOfAGatewayWithoutStreamsAreNotFound(t *testing.T) {
	var none *Engine
	api := compiled(t, none, apiOf(t, `{`+same+`}`))
	ex := pipeline.For(&wire.Call{Method: []byte("POST")})
	defer ex.Release()
	ex.Path = []byte("/same")
	if v := api.Version.Forward.Handle(ex); v != pipeline.Rejected || ex.Rejection.Status != 404 {
		t.Error(v, ex.Rejection)
	}
	none.Swap([]*pipeline.API{api}, nil)
	if err := none.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestSocketsWithoutWebSocketAreAnsweredAsOtherRequests(t *testing.T) {
	e := newEngine(t)
	e.webSockets = false
	stage := compiled(t, e, apiOf(t, `{"out": {"input": `+inside+`, "output": {"http_server": {"path": "/feed", "ws_path": "/live"}}}}`)).Version.Forward.(*Stage)
	call := &wire.Call{Method: []byte("GET")}
	call.SetLines([]byte("Connection: Upgrade\r\nUpgrade: websocket\r\n"))
	ex := pipeline.For(call)
	defer ex.Release()
	ex.Path = []byte("/live")
	if _, _, refused := stage.find(ex); refused != noWebSocket {
		t.Errorf("%+v", refused)
	}
	if !slices.Contains(stage.paths(), "/live") {
		t.Error(stage.paths())
	}
}
