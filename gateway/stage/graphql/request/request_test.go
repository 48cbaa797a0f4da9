package request

import (
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func TestWeights(t *testing.T) {
	for text, want := range map[string]int{
		"1": 1000, "0": 0, "0.5": 500, "0.05": 50, "0.001": 1, "0.0005": 0, "1.000": 1000, "1.9": 1000, "": 1000, "x": 1000, "0.": 0, "2": 1000, "0.5x": 500,
	} {
		if got := thousandths([]byte(text)); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestParametersAreEscapedForEveryReader(t *testing.T) {
	text := "{ a(b: \"é &=+%;\\u0000\") }\n#~-._"
	q := (&Request{Query: []byte(text), Operation: []byte("A b")}).AppendParameters(nil)
	read, err := url.ParseQuery(string(q))
	if err != nil || read.Get("query") != text || read.Get("operationName") != "A b" || len(read) != 2 {
		t.Errorf("%s is read as %v, %v", q, read, err)
	}
	var d Decoder
	r, refused := d.URL(q)
	if refused != nil || string(r.Query) != text || string(r.Operation) != "A b" {
		t.Errorf("%+v, %v", r, refused)
	}
}

func TestErrorsAreWrittenAsJSON(t *testing.T) {
	got := string(Body(
		&syntax.Error{Message: "a \"b\"\n\x01é\xff", Locations: []syntax.Location{{Line: 1, Column: 2}, {Line: 30, Column: 4}}},
		&syntax.Error{Message: "c"},
	))
	const want = `{"errors":[{"message":"a \"b\"\n\u0001é` + "\ufffd" + `","locations":[{"line":1,"column":2},{"line":30,"column":4}]},{"message":"c"}]}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// FuzzURL holds the reading of URLs against that of the standard library.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"query={a}", "a=b&%71uery=%7Ba%7D&operationName=x", "query=a+b&variables={}&extensions=null", "query=%e9", "q;uery=1&query=a", "Query=a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, params string) {
		var d Decoder
		r, refused := d.URL([]byte(params))
		others, err := url.ParseQuery(string(d.AppendOthers(nil, []byte(params))))
		for _, m := range known {
			if err == nil && others.Has(names[m]) {
				t.Errorf("%q: %s is left over", params, names[m])
			}
		}
		if refused != nil || r.Query == nil {
			return
		}
		read, err := url.ParseQuery(params)
		if err != nil {
			return // it may drop what another reader keeps
		}
		if read.Get("query") != string(r.Query) || read.Get("operationName") != string(r.Operation) || len(read["query"]) != 1 {
			t.Errorf("%q is read as %v", params, read)
		}
	})
}

// TestNamesThatOtherReadersTakeForOurs has names of parameters that reach some
// server as another one's: refused in a URL that is judged, and not forwarded
// beside a body.
func TestNamesThatOtherReadersTakeForOurs(t *testing.T) {
	for params, want := range map[string]string{
		"query={a}&+query={b}":               lookalikeMember.Message, // PHP
		"query={a}&%20query={b}":             lookalikeMember.Message,
		"query={a}&query%00x={b}":            lookalikeMember.Message,
		"query={a}&query[]={b}":              lookalikeMember.Message,
		"query={a}&%5Bquery%5D={b}":          lookalikeMember.Message, // qs
		"query={a}&variables[n]=1":           lookalikeMember.Message,
		"query={a}&extensions[a][b]=1":       lookalikeMember.Message,
		"query={a}&QUERY%00x={b}":            lookalikeMember.Message,
		"query={a}&%u0071uery={b}":           urlEscape.Message, // ASP.NET
		"query={a}&quer%y={b}":               urlEscape.Message,
		"query={a}&x=1;%71uery={b}":          urlSeparator.Message, // Rack
		"query={a}&x=1;+query={b}":           urlSeparator.Message,
		"query={a}&x=1;y=2;QUERY={b}":        urlSeparator.Message,
		"query={a}&amp;query={b}":            urlSeparator.Message,
		"query={a}&id=abc":                   idBesideQuery.Message, // servers of stored documents
		"query={a}&ID=abc":                   idBesideQuery.Message,
		"query={a}&doc_id=abc":               idBesideQuery.Message,
		"query={a}&id=&doc_id=abc":           idBesideQuery.Message,
		"query={a}&documentId=abc":           documentBesideQuery.Message,
		"query={a(b:\"1;query\")}":           "",
		"query={a}&identity=1&my_query={b}":  "",
		"query={a}&queries=1&[]=2&=3&a.id=4": "",
	} {
		var d Decoder
		_, refused := d.URL([]byte(params))
		got := ""
		if refused != nil {
			got = refused.Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", params, got, want)
		}
		others := string(d.AppendOthers(nil, []byte(params)))
		_, rest, _ := strings.Cut(params, "&")
		if want == "" && others != rest || want != "" && others != "" && others != "amp" {
			t.Errorf("%s: %q goes up beside a body", params, others)
		}
	}
}

func TestMembersThatOtherReadersTakeForOurs(t *testing.T) {
	hash := strings.Repeat("0", 64)
	for body, want := range map[string]string{
		`{"query":"{a}","id":"abc"}`:          idBesideQuery.Message,
		`{"doc_id":"abc","query":"{a}"}`:      idBesideQuery.Message,
		`{"query":"{a}","\u0069d":"abc"}`:     idBesideQuery.Message,
		`{"query":"{a}","documentId":"abc"}`:  documentBesideQuery.Message,
		`{"id":"abc"}`:                        NotSupported.Message,
		`{"query":"{a}","id":7,"ID":"x"}`:     "",
		`{"id":7,"doc_id":"x","query":"{a}"}`: idBesideQuery.Message,
		`{"query":"{a}","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`:                 persistedNone,
		`{"query":"{a}","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `","md5Hash":"abc"}}}`: persistedType.Message,
	} {
		var d Decoder
		_, _, refused := d.Body([]byte(body), 0)
		got := persistedNone
		if refused != nil {
			got = refused.Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

const persistedNone = "" // read, and left to who knows the documents

func TestContentTypesThatAreNotUTF8(t *testing.T) {
	for value, want := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON ;Charset=\"UTF-8\"": true,
		"application/json; charset = UTF8": true, "application/json; profile=x": true, "application/json;": true,
		"application/json; charset=utf-7": false, "application/json; charset =utf-7": false, "application/json;\tcharset\t= utf-7": false,
		"application/json; charset*=utf-7''x": false, "application/json; charset*0=utf; charset*1=-7": false, "application/json; charset": false,
		"application/json; charset=utf-8; charset=utf-7": false, "application/json; a=\"; charset=utf-7": false, "application/json, text/plain": false,
		"application/jsonx": false, "text/plain": false, "application/graphql": true, "application/graphql; charset=utf-7": false,
	} {
		var h Head
		head := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Type: " + value + "\r\n\r\n"
		call, fault := wire.NewCall([]byte(head), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10, MaxBody: 1})
		if fault != nil {
			t.Fatalf("%s: %v", value, fault)
		}
		h.Read(call)
		if got := h.Readable(call) == nil; got != want {
			t.Errorf("%s: read is %t, want %t", value, got, want)
		}
	}
}
