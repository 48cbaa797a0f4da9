package site

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/credentials"
)

// A request is a call of an API that code samples make.
type request struct {
	Method, URL string
	AuthName    string      // header field of the credential
	Auth        string      // its value; "" for none
	More        [][2]string // further header fields: names and values
	Body        string      // JSON; "" for none
	Endless     bool        // the answer does not end: it is shown as it comes
}

// newRequest returns a call of an offered API without a body.
func newRequest(method, address string, o *catalogue.Offer) *request {
	return &request{Method: method, URL: address, AuthName: o.AuthHeader, Auth: authOf(o)}
}

// A sample is a request in one language.
type sample struct{ Language, Code string }

// authOf returns what a caller of an offered API sends as its credential.
func authOf(o *catalogue.Offer) string {
	switch {
	case o.IsKeyless:
		return ""
	case o.AuthType == credentials.Basic:
		return "Basic BASE64_OF_USER_AND_PASSWORD"
	case o.AuthType == credentials.OAuth:
		return "Bearer ACCESS_TOKEN"
	}
	return "YOUR_KEY"
}

// origin returns scheme and host of the portal's own address.
func (s *Site) origin() string {
	u, err := url.Parse(s.deps.PublicURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// jsonText returns a text as JSON, which is also a literal of JavaScript and Python.
func jsonText(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil {
		return `""`
	}
	return strings.TrimSpace(b.String())
}

// shellText quotes a text for a shell.
func shellText(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// samplesOf returns a request for curl and in three languages.
func samplesOf(r *request) []sample {
	return []sample{{"curl", r.curl()}, {"JavaScript", r.javaScript()}, {"Python", r.python()}, {"Go", r.golang()}}
}

// headers returns the header fields of a request in turn: names and values.
func (r *request) headers() (all [][2]string) {
	if r.Auth != "" {
		all = append(all, [2]string{r.AuthName, r.Auth})
	}
	all = append(all, r.More...)
	if r.Body != "" {
		all = append(all, [2]string{"Content-Type", "application/json"})
	}
	return all
}

func (r *request) curl() string {
	var b strings.Builder
	b.WriteString("curl ")
	if r.Endless {
		b.WriteString("-N ")
	}
	if r.Method != "GET" && (r.Method != "POST" || r.Body == "") {
		b.WriteString("-X " + r.Method + " ")
	}
	b.WriteString(shellText(r.URL))
	for _, h := range r.headers() {
		b.WriteString(" \\\n  -H " + shellText(h[0]+": "+h[1]))
	}
	if r.Body != "" {
		b.WriteString(" \\\n  -d " + shellText(r.Body))
	}
	return b.String()
}

// webSocket returns a command that opens a WebSocket, in which every line is a message.
func (r *request) webSocket() string {
	var code strings.Builder
	code.WriteString("npx wscat -c " + shellText("ws"+strings.TrimPrefix(r.URL, "http")))
	for _, h := range r.headers() {
		code.WriteString(" -H " + shellText(h[0]+": "+h[1]))
	}
	return code.String()
}

func (r *request) javaScript() string {
	var b strings.Builder
	b.WriteString("const answer = await fetch(" + jsonText(r.URL) + ", {\n  method: " + jsonText(r.Method) + ",\n")
	if headers := r.headers(); len(headers) > 0 {
		b.WriteString("  headers: {\n")
		for _, h := range headers {
			b.WriteString("    " + jsonText(h[0]) + ": " + jsonText(h[1]) + ",\n")
		}
		b.WriteString("  },\n")
	}
	if r.Body != "" {
		b.WriteString("  body: " + jsonText(r.Body) + ",\n")
	}
	b.WriteString("});\nconsole.log(answer.status, await answer.text());")
	return b.String()
}

func (r *request) python() string {
	var b strings.Builder
	b.WriteString("import urllib.request\n\nrequest = urllib.request.Request(\n    " + jsonText(r.URL) + ",\n    method=" + jsonText(r.Method) + ",\n")
	if headers := r.headers(); len(headers) > 0 {
		b.WriteString("    headers={\n")
		for _, h := range headers {
			b.WriteString("        " + jsonText(h[0]) + ": " + jsonText(h[1]) + ",\n")
		}
		b.WriteString("    },\n")
	}
	if r.Body != "" {
		b.WriteString("    data=" + jsonText(r.Body) + ".encode(),\n")
	}
	b.WriteString(")\nwith urllib.request.urlopen(request) as answer:\n    print(answer.status, answer.read().decode())")
	return b.String()
}

func (r *request) golang() string {
	body, imports := "nil", "\t\"fmt\"\n\t\"io\"\n\t\"net/http\"\n"
	if r.Body != "" {
		body, imports = "strings.NewReader("+goText(r.Body)+")", imports+"\t\"strings\"\n"
	}
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n" + imports + ")\n\nfunc main() {\n")
	b.WriteString("\trequest, err := http.NewRequest(" + strconv.Quote(r.Method) + ", " + strconv.Quote(r.URL) + ", " + body + ")\n\tif err != nil {\n\t\tpanic(err)\n\t}\n")
	for _, h := range r.headers() {
		b.WriteString("\trequest.Header.Set(" + strconv.Quote(h[0]) + ", " + strconv.Quote(h[1]) + ")\n")
	}
	b.WriteString("\tanswer, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\tdefer answer.Body.Close()\n")
	b.WriteString("\ttext, err := io.ReadAll(answer.Body)\n\tfmt.Println(answer.Status, string(text), err)\n}")
	return b.String()
}

func goText(text string) string {
	if strings.Contains(text, "`") {
		return strconv.Quote(text)
	}
	return "`" + text + "`"
}
