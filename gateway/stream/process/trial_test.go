package process

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// triedStream returns a stream with processors, from an object.
func triedStream(t *testing.T, more string) *streams.Stream {
	t.Helper()
	list, faults := streams.Parse(json.RawMessage(`{"streams":{"s":{"input":{"http_server":{"path":"/in"}},"output":{"http_server":{"path":"/out"}},`+more+`}}}`), streams.Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return &list[0]
}

// outline tells what became of a trial in one line.
func outline(of *streamstate.Tried) string {
	var b strings.Builder
	for i := range of.Steps {
		s := &of.Steps[i]
		b.WriteString(strings.Repeat("-", s.Depth) + s.Kind)
		switch {
		case s.Error != "":
			b.WriteString("!" + s.Error)
		case s.Filtered:
			b.WriteString("/")
		case s.Skipped:
			b.WriteString("~")
		}
		b.WriteString(" " + s.Body + "; ")
	}
	for _, m := range of.Outputs {
		b.WriteString("> " + m.Body + " ")
	}
	for _, m := range of.Dead {
		b.WriteString("dead " + m.Body + " " + m.Reason)
	}
	if of.Reply != nil {
		b.WriteString("reply " + of.Reply.Body)
	}
	return strings.TrimSpace(b.String() + of.Error)
}

func TestProcessorsAreTriedStepByStep(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"rate":2}`)) }))
	defer server.Close()
	dead := `,"dead_letter":{"msgbroker":{"topic":"dead"}}`
	for name, c := range map[string]struct{ stream, body, want string }{
		"mapping":  {`"pipeline":{"processors":[{"mapping":"root.a = this.b"},{"mapping":"root.c = this.a"}]}`, `{"b":1}`, `mapping {"a":1}; mapping {"c":1}; > {"c":1}`},
		"text":     {`"pipeline":{"processors":[{"mapping":"root = content().uppercase()"}]}`, `"hello"`, `mapping HELLO; > HELLO`},
		"filtered": {`"pipeline":{"processors":[{"filter":{"check":"this.a == 1"}},{"log":{"message":"no"}}]}`, `{"a":2}`, `filter/ {"a":2};`},
		"refused":  {`"pipeline":{"processors":[{"mapping":"root = this.a.uppercase()"}]}`, `{"a":2}`, `mapping!`},
		"passed":   {`"pipeline":{"processors":[{"mapping":"root = this.a.uppercase()","on_error":"pass"}]}`, `{"a":2}`, `mapping!`},
		"split":    {`"pipeline":{"processors":[{"split":{}},{"mapping":"root = this + 1"}]}`, `[1,2]`, `split [1,2]; mapping 2; mapping 3; > 2 > 3`},
		"batch":    {`"pipeline":{"processors":[{"split":{}},{"batch":{"count":9,"period":"10m"}}]}`, `[1,2]`, `split [1,2]; batch 1; batch 2; > [1,2]`},
		"switch":   {`"pipeline":{"processors":[{"switch":{"cases":[{"check":"this.a == 1","processors":[{"mapping":"root = 1"}]},{"processors":[{"mapping":"root = 2"}]}]}}]}`, `{"a":7}`, `switch {"a":7}; -mapping 2; > 2`},
		"buried":   {`"pipeline":{"processors":[{"dead_letter":{"reason":"bad ${! this.a }"}}]}` + dead, `{"a":2}`, `dead_letter {"a":2}; dead {"a":2} bad 2`},
		"reply":    {`"pipeline":{"processors":[{"sync_response":{}},{"mapping":"root = deleted()"}]}`, `{"a":2}`, `sync_response {"a":2}; mapping/ {"a":2}; reply {"a":2}`},
		"branch":   {`"pipeline":{"processors":[{"branch":{"request_map":"root.q = this.a","processors":[{"http":{"url":"` + server.URL + `"}}],"result_map":"root.rate = this.rate"}}]}`, `{"a":2}`, `-http~ {"q":2}; branch`},
	} {
		at := site(new(lockedBuffer))
		at.Dial = (&net.Dialer{}).DialContext
		tried, err := Try(t.Context(), triedStream(t, c.stream), at, &streamstate.Trial{Body: json.RawMessage(c.body)})
		if err != nil {
			t.Fatal(name, err)
		}
		if got := outline(tried); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
		if refused := tried.Error != ""; refused != (name == "refused") {
			t.Errorf("%s: error %q", name, tried.Error)
		}
		if name != "branch" {
			continue
		}
		if tried, err = Try(t.Context(), triedStream(t, c.stream), at, &streamstate.Trial{Body: json.RawMessage(c.body), Calls: true}); err != nil {
			t.Fatal(err)
		}
		if got := outline(tried); got != `-http {"rate":2}; branch {"a":2,"rate":2}; > {"a":2,"rate":2}` {
			t.Errorf("with calls: %s", got)
		}
	}
}

func TestTrialsHaveMetadataAndBounds(t *testing.T) {
	list := triedStream(t, `"pipeline":{"processors":[{"mapping":"meta out = @in + \"!\""},{"split":{}},{"mapping":"root = \"x\".repeat(70000)"}]}`)
	items := "[" + strings.Repeat("1,", 299) + "1]"
	tried, err := Try(t.Context(), list, site(new(lockedBuffer)), &streamstate.Trial{Body: json.RawMessage(items), Metadata: map[string]string{"In": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := tried.Steps[0].Metadata; got["in"] != "v" || got["out"] != "v!" {
		t.Errorf("metadata %v", got)
	}
	text, err := json.Marshal(tried)
	if err != nil || len(text) > 3<<20 || !tried.Cut || len(tried.Outputs) != 300 {
		t.Errorf("%d bytes, cut %v, %d outputs, %v", len(text), tried.Cut, len(tried.Outputs), err)
	}
	if first := &tried.Outputs[0]; !first.Cut || len(first.Body) != 64<<10 {
		t.Errorf("%d bytes of the first", len(first.Body))
	}
}

// A server that does not answer ends with the time of the trial.
func TestTrialsEnd(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hang)
	list := triedStream(t, `"pipeline":{"processors":[{"http":{"url":"`+server.URL+`","timeout":"10m","retries":0}}]}`)
	at := site(new(lockedBuffer))
	at.Dial = (&net.Dialer{}).DialContext
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Try(ctx, list, at, &streamstate.Trial{Body: json.RawMessage("1"), Calls: true}); err == nil || ctx.Err() == nil {
		t.Errorf("it ended with %v", err)
	}
}
