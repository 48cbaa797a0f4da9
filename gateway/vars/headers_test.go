package vars

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func TestHeaderRules(t *testing.T) {
	type rewrites = map[string]*definition.GraphQLHeaderRewrite
	set := func(value string) *definition.GraphQLHeaderRewrite {
		return &definition.GraphQLHeaderRewrite{Value: value}
	}
	only := func(value string) *definition.GraphQLHeaderRewrite {
		return &definition.GraphQLHeaderRewrite{Value: value, Remove: true}
	}
	const client = "GET / HTTP/1.1\r\nHost: a\r\nX-Both: theirs\r\nX-Both: twice\r\nX-Client: c\r\nUser-Agent: ua\r\nAuthorization: key\r\n\r\n"
	for _, c := range []struct {
		name      string
		immutable bool
		headers   map[string]string
		rewrite   rewrites
		extra     string // of the lines that are added
		drop      string
	}{
		{name: "added", headers: map[string]string{"x-new": "v $svc_context.headers_X_Client"}, extra: "X-New: v c"},
		{name: "both values are sent", headers: map[string]string{"X-Both": "ours"}, extra: "X-Both: ours"},
		{name: "in the order of their names", headers: map[string]string{"b": "2", "a": "1", "c": "3"}, extra: "A: 1|B: 2|C: 3"},
		{name: "the client's wins", immutable: true, headers: map[string]string{"X-Both": "ours", "X-New": "n"}, extra: "X-New: n"},
		{name: "of a stripped header there is none of the client", immutable: true, headers: map[string]string{"Authorization": "up"}, extra: "Authorization: up"},
		{name: "rewrites need immutable headers", rewrite: rewrites{"X-Both": set("r")}},
		{name: "set over the client's", immutable: true, rewrite: rewrites{"x-both": set("r")}, extra: "X-Both: r", drop: "X-Both"},
		{name: "set where there is none", immutable: true, rewrite: rewrites{"X-New": set("r")}, extra: "X-New: r", drop: "X-New"},
		{name: "set once", immutable: true, headers: map[string]string{"X-New": "n"}, rewrite: rewrites{"X-New": set("r")}, extra: "X-New: r", drop: "X-New"},
		{name: "removed when different", immutable: true, rewrite: rewrites{"X-Client": only("d")}, drop: "X-Client"},
		{name: "removed when one value is different", immutable: true, rewrite: rewrites{"X-Both": only("theirs")}, drop: "X-Both"},
		{name: "kept when equal", immutable: true, rewrite: rewrites{"X-Client": only("$svc_context.headers_X_Client")}},
		{name: "nothing to remove", immutable: true, rewrite: rewrites{"X-New": only("d")}},
		{name: "removed rather than replaced", immutable: true, headers: map[string]string{"X-Client": "ours"}, rewrite: rewrites{"X-Client": only("d")}, drop: "X-Client"},
		{name: "beside the client's agent", headers: map[string]string{"User-Agent": "ours"}, extra: "User-Agent: ours"},
		{name: "in place of the gateway's own", headers: map[string]string{"X-Request-ID": "ours"}, extra: "X-Request-Id: ours", drop: "X-Request-Id"},
		{name: "no rule", rewrite: rewrites{"X": nil}, immutable: true},
	} {
		proxy := &definition.GraphQLProxy{RequestHeaders: c.headers, RequestHeadersRewrite: c.rewrite}
		proxy.Features = &definition.GraphQLProxyFeatures{UseImmutableHeaders: c.immutable}
		h, err := CompileHeaders(&definition.API{EnableContextVars: true, GraphQL: &definition.GraphQL{Proxy: proxy}})
		if err != nil {
			t.Fatal(err)
		}
		ex := exchange(t, client)
		strip := []string{"Authorization"}
		ex.Outgoing.Drop = strip
		if h != nil {
			h.Apply(ex)
		}
		extra := strings.ReplaceAll(strings.TrimSuffix(string(ex.Outgoing.Extra), "\r\n"), "\r\n", "|")
		drop := strings.Join(ex.Outgoing.Drop[1:], " ")
		if extra != c.extra || drop != c.drop {
			t.Errorf("%s: added %q, want %q; dropped %q, want %q", c.name, extra, c.extra, drop, c.drop)
		}
	}
}

func TestHeadersThatTheVersionSetsMeetThoseOfProxiedOperations(t *testing.T) {
	proxy := &definition.GraphQLProxy{
		RequestHeaders:        map[string]string{"X-Both": "ours", "X-New": "n"},
		RequestHeadersRewrite: map[string]*definition.GraphQLHeaderRewrite{"X-Set": {Value: "r"}},
	}
	for immutable, want := range map[bool]string{
		false: "x-both: version\r\nX-Set: version\r\nX-Both: ours\r\nX-New: n\r\n",
		true:  "x-both: version\r\nX-Set: r\r\nX-New: n\r\n",
	} {
		proxy.Features = &definition.GraphQLProxyFeatures{UseImmutableHeaders: immutable}
		h, err := CompileHeaders(&definition.API{GraphQL: &definition.GraphQL{Proxy: proxy}})
		if err != nil {
			t.Fatal(err)
		}
		ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\nX-Both: theirs\r\n\r\n")
		ex.Outgoing.Drop, ex.Outgoing.Extra = []string{"X-Both", "X-Set"}, []byte("x-both: version\r\nX-Set: version\r\n")
		h.Apply(ex)
		if got := string(ex.Outgoing.Extra); got != want {
			t.Errorf("immutable %t: got %q, want %q", immutable, got, want)
		}
	}
}

func TestTheGatewaysAgentIsNotBesideAConfiguredOne(t *testing.T) {
	h, err := CompileHeaders(&definition.API{GraphQL: &definition.GraphQL{Proxy: &definition.GraphQLProxy{RequestHeaders: map[string]string{"user-agent": "x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	ex := exchange(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	h.Apply(ex)
	if strings.Join(ex.Outgoing.Drop, " ") != "User-Agent" {
		t.Errorf("dropped %q", ex.Outgoing.Drop)
	}
}

func TestAPIsWithoutHeaderRulesHaveNone(t *testing.T) {
	for _, api := range []*definition.API{{}, {GraphQL: &definition.GraphQL{}}, {GraphQL: &definition.GraphQL{Proxy: &definition.GraphQLProxy{AuthHeaders: map[string]string{"A": "b"}}}}} {
		if h, err := CompileHeaders(api); h != nil || err != nil {
			t.Errorf("%v, %v", h, err)
		}
	}
}

func TestApplyingHeadersDoesNotAllocate(t *testing.T) {
	proxy := &definition.GraphQLProxy{
		RequestHeaders:        map[string]string{"X-A": "$svc_context.headers_X_My_Id", "X-B": "b", "Code": "x"},
		RequestHeadersRewrite: map[string]*definition.GraphQLHeaderRewrite{"X-C": {Value: "c"}, "Code": {Value: "$svc_meta.user", Remove: true}},
		Features:              &definition.GraphQLProxyFeatures{UseImmutableHeaders: true},
	}
	h, err := CompileHeaders(&definition.API{EnableContextVars: true, GraphQL: &definition.GraphQL{Proxy: proxy}})
	if err != nil {
		t.Fatal(err)
	}
	sample := sampleExchange(t)
	shared := []string{"Authorization"}
	if n := testing.AllocsPerRun(100, func() {
		ex := pipeline.For(sample.Call)
		ex.Session, ex.Outgoing.Drop = sample.Session, shared
		h.Apply(ex)
		ex.Release()
	}); n > 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}
