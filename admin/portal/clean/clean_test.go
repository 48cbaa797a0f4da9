package clean

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// attacks is what browsers have been made to run, one a line.
func attacks(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#! ") {
			all = append(all, strings.ReplaceAll(line, `\n`, "\n"))
		}
	}
	if len(all) < 80 {
		t.Fatalf("only %d attacks", len(all))
	}
	return all
}

// allowed is every element and attribute that a page may get.
var allowed = map[string]string{
	"p": "", "br": "", "hr": "", "h1": "", "h2": "", "h3": "", "h4": "", "h5": "", "h6": "", "strong": "", "em": "", "del": "",
	"blockquote": "", "ul": "", "ol": "start", "li": "", "pre": "", "code": "class", "table": "", "thead": "", "tbody": "", "tr": "",
	"th": "align", "td": "align", "a": "href rel title", "img": "src alt title",
}

var safeLink = regexp.MustCompile(`(?i)^(https?://|mailto:|[^:]*$|[^:/?#]*[/?#])`)

// dangers reads HTML as browsers do and lists what must not be in it.
func dangers(text string) (found []string) {
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return found
		}
		if kind == html.CommentToken || kind == html.DoctypeToken {
			found = append(found, tokens.Token().String())
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		token := tokens.Token()
		attributes, known := allowed[token.Data]
		if !known {
			found = append(found, "element "+token.Data)
		}
		for _, a := range token.Attr {
			if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
				found = append(found, "attribute "+token.Data+" "+a.Key)
			}
			value := strings.Map(func(r rune) rune {
				if r <= ' ' {
					return -1
				}
				return r
			}, a.Val)
			if a.Key == "href" && !safeLink.MatchString(value) || a.Key == "src" && !strings.HasPrefix(value, "https://") {
				found = append(found, a.Key+" "+a.Val)
			}
		}
	}
}

func TestNothingRunsInAPageThatShowsMarkdown(t *testing.T) {
	for _, attack := range attacks(t) {
		for _, text := range []string{attack, "before " + attack + " after", "[link](" + attack + ")", "![image](" + attack + ")", "<" + attack + ">", "[r]\n\n[r]: " + attack, "| a |\n|---|\n| " + attack + " |", "- > " + attack} {
			shown, err := Clean(Markdown, text)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			if found := dangers(shown); len(found) > 0 {
				t.Errorf("%q\nbecomes %q\nwith %q", text, shown, found)
			}
		}
	}
}

// TestHTMLIsStoppedEvenIfTheReaderLetsItThrough gives the attacks to the second of
// the two walls alone.
func TestHTMLIsStoppedEvenIfTheReaderLetsItThrough(t *testing.T) {
	for _, attack := range attacks(t) {
		for _, text := range []string{attack, `<a href="` + attack + `">x</a>`, `<img src="` + attack + `">`, "<p title='" + attack + "'>x</p>", `<code class="` + attack + `">x</code>`} {
			if found := dangers(policy.Sanitize(text)); len(found) > 0 {
				t.Errorf("%q\nbecomes %q\nwith %q", text, policy.Sanitize(text), found)
			}
		}
	}
}

func TestNothingRunsInAPageThatShowsOpenAPI(t *testing.T) {
	for _, attack := range attacks(t) {
		quoted, _ := json.Marshal(attack)
		text := string(quoted)
		doc := `{"openapi":"3.0.3","info":{"title":` + text + `,"description":` + text + `,"termsOfService":` + text + `,"contact":{"name":` + text + `,"url":` + text + `}},
			"externalDocs":{"url":` + text + `,"description":` + text + `},"tags":[{"name":` + text + `}],
			"paths":{"/a":{"get":{"summary":` + text + `,"responses":{"200":{"description":` + text + `}}}}},
			"components":{"schemas":{"A":{"properties":{` + text + `:{"title":` + text + `,"description":` + text + `}}}}}}`
		shown, err := Clean(OpenAPI, doc)
		if err != nil {
			t.Errorf("%q: %v", attack, err)
			continue
		}
		if strings.ContainsAny(shown, "<>&") {
			t.Errorf("%q: bytes that mean something to HTML in %s", attack, shown)
		}
		var value any
		if err := json.Unmarshal([]byte(shown), &value); err != nil {
			t.Fatalf("%v in %s", err, shown)
		}
		walk("", value, func(name, text string) {
			if found := dangers(text); len(found) > 0 {
				t.Errorf("%q: %s is %q with %q", attack, name, text, found)
			}
			if name == "url" || name == "termsOfService" {
				if !safeLink.MatchString(text) || strings.ContainsAny(text, "\n\t\\ ") {
					t.Errorf("%q: %s leads to %q", attack, name, text)
				}
			}
		})
	}
}

// walk visits every name and text of a JSON value.
func walk(name string, value any, visit func(name, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for member, each := range v {
			visit("a name", member)
			walk(member, each, visit)
		}
	case []any:
		for _, each := range v {
			walk(name, each, visit)
		}
	case string:
		visit(name, v)
	}
}

// quote writes a string as JSON and GraphQL both read it.
func quote(t testing.TB, text string) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func TestNothingRunsInAPageThatShowsASchema(t *testing.T) {
	for _, attack := range attacks(t) {
		text := quote(t, attack)
		doc := "# " + strings.ReplaceAll(attack, "\n", " ") + "\n" + text + ` type Query { ` + text + ` a(b: String = ` + text + `): Int @deprecated(reason: ` + text + `) }`
		shown, err := Clean(GraphQL, doc)
		if err != nil {
			t.Errorf("%q: %v", doc, err)
			continue
		}
		if found := dangers(shown); len(found) > 0 {
			t.Errorf("%q becomes %q with %q", attack, shown, found)
		}
	}
}

func TestMarkdownSaysWhatItSaid(t *testing.T) {
	for text, want := range map[string]string{
		"# Orders\n\nCall **GET** `/orders`.":          "<h1>Orders</h1>\n<p>Call <strong>GET</strong> <code>/orders</code>.</p>",
		"[docs](https://example.com/a?b=1&c=2 \"t\")":  `<p><a href="https://example.com/a?b=1&amp;c=2" title="t" rel="nofollow noreferrer">docs</a></p>`,
		"[here](/portal/keys)":                         `<p><a href="/portal/keys" rel="nofollow noreferrer">here</a></p>`,
		"![logo](https://example.com/a.png)":           `<p><img src="https://example.com/a.png" alt="logo"></p>`,
		"```go\na < b\n```":                            "<pre><code class=\"language-go\">a &lt; b\n</code></pre>",
		"3. c\n4. d":                                   "<ol start=\"3\">\n<li>c</li>\n<li>d</li>\n</ol>",
		"a < b & c":                                    "<p>a &lt; b &amp; c</p>",
		"| a | b |\n|:--|--:|\n| 1 | 2 |":              "<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"left\">1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody>\n</table>",
		"Lists the orders (newest first), ten a page.": "<p>Lists the orders (newest first), ten a page.</p>",
		"~~old~~": "<p><del>old</del></p>",
	} {
		if shown, err := Clean(Markdown, text); shown != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, shown, err, want)
		}
	}
}

func TestPlainTextIsReadAsMarkdownWouldBe(t *testing.T) {
	for _, text := range []string{"a", "Lists orders.", "A b, c (d).", "a.b.c", "a . b", "x, y", "A (b"} {
		if !isPlain(text) {
			t.Errorf("%q is not plain", text)
		}
		quick, _ := markdown(text)
		slow, err := markdown(text + "\n\n*x*")
		if err != nil || slow != quick+"\n<p><em>x</em></p>" {
			t.Errorf("%q: %q, but beside another paragraph %q", text, quick, slow)
		}
	}
	for _, text := range []string{"", " a", "a ", "1. a", "a  b", "a\nb", "a*b*", "<a", "a&b", "a_b", "é"} {
		if isPlain(text) {
			t.Errorf("%q is plain", text)
		}
	}
}

func repeated(text string, size int) string { return strings.Repeat(text, size/len(text)) }

// hostile are texts that take long to read, of a quarter of what is read.
func hostile() map[string]string {
	const n = maxMarkdown / 4
	all := map[string]string{"table": "|" + strings.Repeat("a|", 200) + "\n|" + strings.Repeat("-|", 200) + "\n" + repeated("a\n", n-1000)}
	for _, text := range []string{
		">", "> ", "- ", "1. ", "[", "[a](", "![", "![a](", "*a **a ", "*a_ ", "a**b" + "c* ", "<", "<a ", "<![CDATA[", "<!--", "<?", "&",
		"[a]: b\n", "[a][b", "~~a~ ", "[a](<b", "]", "[[]", "\\", "\n", " ", "\t", "**x [a*b**c*](", "# a\n", "<div>", "_*", "|a|\n", "|", "`",
		"> a\nb\n", "a\n", "- a\n  ", "a\n\n", "> > > > a\n\n", "- a\n\n", "[\n", "a|\n-|\n", "    a\n", "\n    - ", "```\n", "`a``b```c````", "<a\n", "--- ",
	} {
		all[text] = repeated(text, n)
		all[text+", in paragraphs"] = repeated(repeated(text, 4000)+"\n\n", n)
	}
	var quotes, lists, ticks strings.Builder
	for i := 1; quotes.Len() < n-1000; i++ {
		quotes.WriteString(strings.Repeat(">", i%40) + "a\n")
	}
	for i := 0; lists.Len() < n-1000; i++ {
		lists.WriteString(strings.Repeat(" ", 2*(i%90)) + "- a\n")
	}
	for i := 1; ticks.Len() < n-4000; i++ {
		ticks.WriteString(strings.Repeat("`", i%1000) + "a")
	}
	all["quotes"], all["lists"], all["ticks"] = quotes.String(), lists.String(), ticks.String()
	return all
}

// TestNoMarkdownTakesLong holds hostile texts against a plain one of the largest
// size, in the same run.
func TestNoMarkdownTakesLong(t *testing.T) {
	measure := func(text string) time.Duration {
		started := time.Now()
		_, _ = Clean(Markdown, text) // some are refused, which takes time as well
		return time.Since(started)
	}
	plain := measure(strings.Repeat("Some words of a plain text, in lines.\n\n", maxMarkdown/50))
	worst := 0.0
	for name, text := range hostile() {
		ratio := float64(measure(text)) / float64(plain)
		if worst = max(worst, ratio); ratio > 50 {
			t.Errorf("%.40q takes %.0f times as long as a plain text", name, ratio)
		}
	}
	t.Logf("the worst takes %.0f times as long as a plain text", worst)
}

func TestWhatIsRefusedIsNamed(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		text string
		path string
		says string
	}{
		{Markdown, "", "", "is empty"},
		{Markdown, strings.Repeat("a", MaxBytes+1), "", "at most 2097152"},
		{Markdown, strings.Repeat("a\n\n", maxMarkdown/2), "", "at most 1048576"},
		{Markdown, "a\n\n" + strings.Repeat(">", 50), "", "line 3 nests"},
		{"docx", "a", "", "of which nothing is known"},
		{OpenAPI, "[1]", "", "must be an object"},
		{OpenAPI, "just text", "", "must be an object"},
		{OpenAPI, `{"openapi":"3.0.0"`, "", "is no JSON: at byte 18"},
		{OpenAPI, `{"openapi":"3.0.0"} {}`, "", "something follows"},
		{OpenAPI, "a: [", "", "is neither JSON nor YAML"},
		{OpenAPI, "openapi: 3.0.0\n---\nb: c", "", "more than one YAML document"},
		{OpenAPI, `{"openapi":3}`, "openapi", "must be a version"},
		{OpenAPI, `{"openapi":"4.0"}`, "openapi", "must be a version"},
		{OpenAPI, `{"swagger":"1.2"}`, "swagger", "2.0"},
		{OpenAPI, `{"openapi":"3.0.0","paths":{}}`, "info", "must be an object"},
		{OpenAPI, `{"openapi":"3.0.0","info":{"title":" "},"paths":{}}`, "info.title", "called"},
		{OpenAPI, `{"openapi":"3.0.0","info":{"title":"a"}}`, "paths", "must be an object"},
		{OpenAPI, `{"openapi":"3.0.0","info":{"title":"a"},"paths":{"/a":{"$ref":"http://evil.example/x"}}}`, `["paths"]["/a"]["$ref"]`, "same document"},
		{OpenAPI, strings.Repeat("[", 200), "", "is neither JSON nor YAML"},
		{OpenAPI, `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "", "more than 100 levels"},
		{OpenAPI, "a: .inf", `["a"]`, "cannot be written in JSON"},
		{OpenAPI, "? [a]\n: b", "", "a name must be text"},
		{OpenAPI, "a: &x [*x]", "", "levels"},
		{GraphQL, "type Query {", "", "1:13"},
		{GraphQL, "type Query { a: B }", "", "B"},
	} {
		shown, err := Clean(c.kind, c.text)
		problem, ok := errors.AsType[*Problem](err)
		if !ok || shown != "" || problem.Path != c.path || !strings.Contains(problem.Error(), c.says) {
			t.Errorf("%s %.60q: %q, %v", c.kind, c.text, shown, err)
		}
	}
}
