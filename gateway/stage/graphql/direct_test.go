package graphql_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// direct is a stage without a gateway around it.
func direct(t testing.TB, change func(*definition.GraphQL)) pipeline.Stage {
	t.Helper()
	g := graphql.New(graphql.Options{
		MaxBody: 64 << 10, BatchMax: 10, Ceilings: ceilings, Cache: 1 << 20, RefusedCache: 1 << 20,
		Log: slog.New(slog.DiscardHandler),
	})
	d := &definition.GraphQL{Enabled: true, Schema: schemaText}
	if change != nil {
		change(d)
	}
	stage, err := g.Compile(&definition.API{ID: "a", UseKeyless: true, GraphQL: d})
	if err != nil {
		t.Fatal(err)
	}
	return stage
}

// call is a request as the server hands it over, nil when it is none.
func call(method, query, header, body string) *wire.Call {
	head := method + " /?" + query + " HTTP/1.1\r\nHost: x\r\n" + header + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	c, fault := wire.NewCall([]byte(head+body), wire.Config{MaxHeader: 1 << 20, MaxURL: 1 << 20, MaxHeaders: 100, MaxBody: 8 << 20})
	if fault != nil {
		return nil
	}
	c.Started = time.Unix(1, 0)
	return c
}

func TestWhatIsKnownPassesWithoutAllocation(t *testing.T) {
	if race.Enabled {
		t.Log("the race detector drops pooled objects at random: nothing to measure")
		return
	}
	stage := direct(t, nil)
	const header = "Content-Type: application/json\r\nAccept: application/json, */*;q=0.1\r\n"
	for name, c := range map[string]*wire.Call{
		"body":    call("POST", "", header, `{"query":"query Q($c: ID!) {\n country(code: $c) { name continent { code } } }","operationName":"Q","variables":{"c":"DE"}}`),
		"URL":     call("GET", "query=query($c:ID!)%7Bcountry(code:$c)%7Bname%7D%7D&variables=%7B%22c%22:%22DE%22%7D", "Accept: */*\r\n", ""),
		"invalid": call("POST", "", header, `{"query":"{ nope }"}`),
	} {
		round := func() {
			ex := pipeline.For(c)
			stage.Handle(ex)
			ex.Release()
		}
		round()
		if n := testing.AllocsPerRun(200, round); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// FuzzStage holds what passes against readers of JSON of another make: whatever
// way they read what goes up, they must find a valid operation.
func FuzzStage(f *testing.F) {
	const header = "Content-Type: application/json\r\n"
	for _, body := range []string{
		`{"query":"{ secret }"}`, `{"query":"query Q($c: ID!) { country(code: $c) { name } }","variables":{"c":1},"operationName":"Q"}`,
		`[{"query":"{ secret }"},{"query":"{ animals { ... on Cat { lives } } }"}]`, `{"query":"{ nope }"}`, `{"query":"{ secret }","Query":"{ nope }"}`,
		`{"qu\u0065ry":"{ secret \u0023","query":"{ nope }"}`, `{"query":"{ countries(filter: {code: 1, size: 2}) { ...A } } fragment A on Country { code }"}`,
		`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hashOf("{ secret }") + `"}}}`, `{"query":"subscription { renamed { code } }"}`,
	} {
		f.Add("POST", "", header, body)
	}
	f.Add("GET", "query={secret}&variables={}", "Accept: text/event-stream;q=0.3\r\n", "")
	f.Add("GET", "%71uery=%7bsecret%7d&x;query=1", "Accept: a/b;c=\"d,e\", */*\r\n", "")
	stage := direct(f, func(d *definition.GraphQL) {
		d.BatchMax = 3
		d.TrustedDocuments = &definition.GraphQLTrustedDocuments{Documents: map[string]string{hashOf("{ secret }"): "{ secret }"}}
	})
	s, err := schema.Load(schemaText)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, query, header, body string) {
		c := call(method, query, header, body)
		if c == nil {
			return
		}
		ex := pipeline.For(c)
		defer ex.Release()
		verdict := stage.Handle(ex)
		switch {
		case verdict == pipeline.Rejected && (ex.Rejection == nil || !json.Valid(ex.Rejection.JSON())):
			t.Fatalf("refused with %+v", ex.Rejection)
		case verdict == pipeline.Next && method == "POST":
			checkForwarded(t, s, ex.Call.Body)
		}
	})
}

// checkForwarded reads what goes up as other programs do.
func checkForwarded(t *testing.T, s *schema.Schema, body []byte) {
	t.Helper()
	type folded struct{ Query, OperationName string } // names of any case
	var all []folded
	var exact []map[string]any
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		decode(t, body, &all)
		decode(t, body, &exact)
	} else {
		all, exact = make([]folded, 1), make([]map[string]any, 1)
		decode(t, body, &all[0])
		decode(t, body, &exact[0])
	}
	for i, one := range all {
		name, _ := exact[i]["operationName"].(string)
		if exact[i]["query"] != one.Query || name != one.OperationName {
			t.Fatalf("two readings of %s", body)
		}
		var doc syntax.Document
		if err := syntax.Parse(&doc, []byte(one.Query), syntax.Limits{}); err != nil {
			t.Fatalf("%s goes up: %v", body, err)
		}
		if errs := new(validate.Validator).Check(s, &doc, validate.Options{}); len(errs) > 0 {
			t.Fatalf("%s goes up: %v", body, errs[0])
		}
		if _, err := validate.Select(&doc, name); err != nil {
			t.Fatalf("%s goes up: %v", body, err)
		}
	}
}

func decode(t *testing.T, body []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(body, to); err != nil {
		t.Fatalf("%s goes up: %v", body, err)
	}
}

func BenchmarkKnownOperation(b *testing.B) {
	stage := direct(b, nil)
	c := call("POST", "", "Content-Type: application/json\r\nAccept: */*\r\n", `{"query":"query Q($c: ID!) {\n country(code: $c) { name continent { code } } }","operationName":"Q","variables":{"c":"DE"}}`)
	b.ReportAllocs()
	for b.Loop() {
		ex := pipeline.For(c)
		if stage.Handle(ex) != pipeline.Next {
			b.Fatal(ex.Rejection.Message)
		}
		ex.Release()
	}
}

// BenchmarkUnseenOperation has operations of 200 bytes examined, each with a name
// in it that none before had.
func BenchmarkUnseenOperation(b *testing.B) {
	stage := direct(b, nil)
	const mark = "x00000000"
	body := []byte(`{"query":"query Q($c: ID!) { country(code: $c) { name continent { code name countries { name code continent { name } } } } countries(first: 10) { code name ` + mark + `: name continent { code } } }","variables":{"c":"DE"}}`)
	digits := body[bytes.Index(body, []byte(mark))+1:][:len(mark)-1]
	c := call("POST", "", "Content-Type: application/json\r\nAccept: */*\r\n", string(body))
	c.SetBody(body)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for at, n := len(digits)-1, i; at >= 0; at, n = at-1, n/10 {
			digits[at] = byte('0' + n%10)
		}
		ex := pipeline.For(c)
		if stage.Handle(ex) != pipeline.Next {
			b.Fatal(ex.Rejection.Message)
		}
		ex.Release()
	}
}
