package internalcall

import (
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// others notes what is handed over.
type others struct {
	ref pipeline.APIRef
	uri string
}

func (o *others) Call(_ *pipeline.Exchange, to *pipeline.APIRef, uri []byte) pipeline.Verdict {
	o.ref, o.uri = *to, string(uri)
	return pipeline.Answered
}

func (o *others) AppendFingerprints(dst []byte, _ *pipeline.Exchange, _ *pipeline.APIRef) ([]byte, bool) {
	return dst, false
}

func exchangeTo(t *testing.T, o pipeline.InternalCalls) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte("GET /a/b?c=d HTTP/1.1\r\nHost: h\r\n\r\n"), wire.Config{
		MaxHeader: 4 << 10, MaxURL: 1 << 10, MaxHeaders: 20, MaxBody: 1 << 10,
		ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
	})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	ex.Rest, ex.Internal = call.Path[len("/a"):], o
	return ex
}

func TestPathsAreThoseThatAnUpstreamWouldGet(t *testing.T) {
	for _, c := range []struct {
		name, target, want string
		change             func(*definition.API, *pipeline.Exchange)
	}{
		{"the whole path", "svc://x", "/a/b?c=d", nil},
		{"without the listen path", "svc://x", "/b?c=d", func(def *definition.API, _ *pipeline.Exchange) { def.Proxy.StripListenPath = true }},
		{"behind that of the target", "svc://x/base/?k=v", "/base/a/b?k=v&c=d", nil},
		{"rewritten", "svc://x/base", "/base/other?q", func(_ *definition.API, ex *pipeline.Exchange) {
			ex.Outgoing.Path, ex.Outgoing.HasPath, ex.Outgoing.Query, ex.Outgoing.HasQuery = []byte("/other"), true, []byte("q"), true
		}},
		{"the target alone", "svc://x/base", "/base", func(_ *definition.API, ex *pipeline.Exchange) { ex.Outgoing.Root = true }},
	} {
		def := &definition.API{OrgID: "o"}
		o := &others{}
		ex := exchangeTo(t, o)
		if c.change != nil {
			c.change(def, ex)
		}
		s, err := Compile(def, c.target)
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Handle(ex); v != pipeline.Answered || o.uri != c.want || o.ref != (pipeline.APIRef{Name: "x", Key: "o\nx"}) {
			t.Errorf("%s: %v, %q to %+v, want %q", c.name, v, o.uri, o.ref, c.want)
		}
	}
}

func TestTargetsThatCannotBeReadAreRefused(t *testing.T) {
	for _, target := range []string{"svc://", "svc://a:80", "svc://a/%00"} {
		if _, err := Compile(&definition.API{}, target); err == nil {
			t.Errorf("%s is accepted", target)
		}
	}
}

// What governs GraphQL would see nothing of what goes through a tunnel.
func TestRequestsOfGraphQLAskForNoOtherProtocol(t *testing.T) {
	for _, on := range []bool{false, true} {
		ex := exchangeTo(t, &others{})
		s, err := Compile(&definition.API{GraphQL: &definition.GraphQL{Enabled: on}}, "svc://a")
		if err != nil {
			t.Fatal(err)
		}
		s.Handle(ex)
		if drops := len(ex.Outgoing.Drop) == 1 && ex.Outgoing.Drop[0] == "Upgrade"; drops != on {
			t.Errorf("GraphQL %v: %q", on, ex.Outgoing.Drop)
		}
	}
}
