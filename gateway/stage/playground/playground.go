// Package playground serves a page for trying the operations of a GraphQL API below its
// listen path. The page and its script are all that it is; its calls go to the API.
// The portal serves the same script.
//
// The script is built from admin/ui/web/src/playground; see that folder's README.
package playground

import (
	"bytes"
	"compress/gzip"
	_ "embed" // of the script
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/http1"
)

//go:generate go run ./pack

//go:embed playground.js.gz
var packed []byte

// Script returns the script, compressed with gzip. The portal has it on pages of its own.
func Script() []byte { return packed }

// unpacked is the script for clients that do not take gzip.
var unpacked = sync.OnceValue(func() []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var script []byte
		if script, err = io.ReadAll(r); err == nil {
			return script
		}
	}
	panic("the script of the playground is damaged: " + err.Error()) // a test reads it
})

// policy lets the page load its script and call its own origin, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"

const common = "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n"

// stage serves the page of one API.
type stage struct {
	graphql              *definition.GraphQL
	page, script, schema string // paths below the listen path
	param                string // query parameter that may hold the key; "": none
	name                 string // of the API
	source               string // of the script, as the page names it
	visible              string // the schema that the caller may use, as the page names it
	endpoint             string // of the API, as the page names it
	plain                []byte // the page without a key in the URL

	pageLines, keyedLines, scriptLines, plainLines, sameLines []byte
	tag                                                       string

	mu    sync.Mutex
	shown map[*pipeline.OperationRules][]byte // what callers may use of the schema; at most maxShown
}

// maxShown bounds the schemas that the playground of one API keeps. Each may be as large as
// the API's.
const maxShown = 4

// Compile returns the stage that serves the playground of an API, or nil if the API has
// none.
func Compile(def *definition.API) pipeline.Stage {
	if !def.IsGraphQL() {
		return nil
	}
	path := def.GraphQL.PlaygroundPath()
	if path == "" {
		return nil
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	s := &stage{
		graphql: def.GraphQL, page: path, script: path + "/playground.js", schema: path + "/schema", shown: make(map[*pipeline.OperationRules][]byte),
		name: def.Name, source: last + "/playground.js", visible: last + "/schema", endpoint: "./" + strings.Repeat("../", strings.Count(path, "/")-1),
	}
	private := ""
	if !def.UseKeyless {
		private = "private, "
		if token := def.Token(); token.UseParam {
			if s.param = token.ParamName; s.param == "" {
				s.param = token.Header()
			}
		}
	}
	sum := fnv.New64a()
	_, _ = sum.Write(packed) // never fails
	s.tag = fmt.Sprintf(`"%016x"`, sum.Sum64())
	head := "Content-Type: text/html; charset=utf-8\r\nContent-Security-Policy: " + policy + "\r\n" + common
	s.pageLines, s.keyedLines = []byte(head+"Cache-Control: "+private+"no-cache\r\n"), []byte(head+"Cache-Control: no-store\r\n")
	s.sameLines = []byte(common + "Cache-Control: " + private + "no-cache\r\nVary: Accept-Encoding\r\nETag: W/" + s.tag + "\r\n")
	s.plainLines = append([]byte("Content-Type: text/javascript; charset=utf-8\r\n"), s.sameLines...)
	s.scriptLines = append([]byte("Content-Encoding: gzip\r\n"), s.plainLines...)
	s.plain = s.html("")
	return s
}

// html returns the page. The key goes on in the URL of the script.
func (s *stage) html(key string) []byte {
	source := s.source
	if key != "" {
		source += "?" + url.QueryEscape(s.param) + "=" + url.QueryEscape(key)
	}
	return fmt.Appendf(nil, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>%[1]s playground</title>
</head>
<body>
<header><h1>%[1]s playground</h1></header>
<main id="playground" data-name="%[1]s" data-endpoint="%[2]s" data-schema="%[5]s" data-param="%[3]s"></main>
<noscript>The playground needs JavaScript.</noscript>
<script src="%[4]s" defer></script>
</body>
</html>
`, html.EscapeString(s.name), s.endpoint, html.EscapeString(s.param), html.EscapeString(source), s.visible)
}

// Handle answers GET of the page, of its script and of the schema that the caller may use.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if len(ex.Path) < len(s.page) || string(ex.Call.Method) != "GET" {
		return pipeline.Next
	}
	switch string(ex.Path) {
	case s.page:
		return s.answerPage(ex)
	case s.script:
		return s.answerScript(ex)
	case s.schema:
		return s.answerSchema(ex)
	}
	return pipeline.Next
}

func (s *stage) answerPage(ex *pipeline.Exchange) pipeline.Verdict {
	key := ""
	if s.param != "" {
		if query, err := url.ParseQuery(string(ex.Call.Query)); err == nil {
			key = query.Get(s.param)
		}
	}
	if key == "" {
		return answer(ex, 200, s.pageLines, s.plain)
	}
	return answer(ex, 200, s.keyedLines, s.html(key))
}

func (s *stage) answerScript(ex *pipeline.Exchange) pipeline.Verdict {
	for i := range ex.Call.Fields {
		f := &ex.Call.Fields[i]
		if http1.EqualFold(ex.Call.NameOf(f), "if-none-match") && strings.Contains(string(ex.Call.ValueOf(f)), s.tag) {
			answer(ex, 304, s.sameLines, nil)
			ex.Answer.NoBody, ex.Answer.Length = true, -1
			return pipeline.Answered
		}
	}
	if http1.Lists(ex.Call.Get(wire.NameAcceptEncoding), []byte("gzip")) {
		return answer(ex, 200, s.scriptLines, packed)
	}
	return answer(ex, 200, s.plainLines, unpacked())
}

// A governor is the stage that governs the operations of the API.
type governor interface {
	EnforcedOn(*pipeline.Exchange) (*pipeline.OperationRules, *pipeline.Rejection)
	Visible(*pipeline.Exchange, *definition.GraphQL, *pipeline.OperationRules) (*rules.Visible, error)
}

var schemaLines = []byte("Content-Type: application/json\r\nCache-Control: no-store\r\n" + common)

// answerSchema answers with what the caller may use of the schema. What is made anew, and
// refusals, count under the rate of the key.
func (s *stage) answerSchema(ex *pipeline.Exchange) pipeline.Verdict {
	governed, ok := ex.Version.GraphQL.(governor)
	if !ok {
		return pipeline.Next
	}
	may, refused := governed.EnforcedOn(ex)
	if refused == nil {
		if shown := s.known(may); shown != nil {
			return answer(ex, 200, schemaLines, shown)
		}
	}
	switch {
	case ex.ChargeRate() != pipeline.Next:
		refused = ex.Rejection
	case refused == nil:
		var shown []byte
		if shown, refused = s.show(ex, governed, may); refused == nil {
			return answer(ex, 200, schemaLines, shown)
		}
	}
	return ex.Reject(refused)
}

func (s *stage) known(may *pipeline.OperationRules) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown[may]
}

var unreadable = pipeline.NewRejection(pipeline.ReasonSchemaBroken, 500, "The schema of the API cannot be read")

// show makes what callers with some rules may use of the schema. One caller at a time
// waits for it, so that it takes one processor at most.
func (s *stage) show(ex *pipeline.Exchange, governed governor, may *pipeline.OperationRules) ([]byte, *pipeline.Rejection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shown := s.shown[may]; shown != nil {
		return shown, nil
	}
	visible, err := governed.Visible(ex, s.graphql, may)
	if err != nil {
		return nil, unreadable
	}
	shown, err := json.Marshal(visible)
	if err != nil {
		return nil, unreadable
	}
	if len(s.shown) >= maxShown {
		clear(s.shown)
	}
	s.shown[may] = shown
	return shown, nil
}

func answer(ex *pipeline.Exchange, status int, lines, body []byte) pipeline.Verdict {
	ex.Answer.Status, ex.Answer.Body = status, body
	ex.Answer.Lines = append(ex.Answer.Lines[:0], lines...)
	return pipeline.Answered
}

// Explain implements pipeline.Explainer.
func (s *stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	if f.Verdict == pipeline.Answered {
		f.Said = "the playground of the API is at " + s.page
	}
}
