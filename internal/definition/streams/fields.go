package streams

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/didyoumean"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/mapping"
)

// fields are the members of one object, which are asked for by name. Those that nobody
// asks for are unknown.
type fields struct {
	r     *reader
	at    string // path in the stream object; "" is the stream
	of    *node  // nil: every field has its default
	known []string
}

// object returns the fields of a value, or nil if it is no object, which is reported.
func (r *reader) object(n *node, at string) *fields {
	if n.kind != '{' {
		r.faultf(at, "must be an object, not %s", typeName(n))
		return nil
	}
	for _, name := range n.twice {
		r.faultf(entry(at, name), "stands twice; leave one of them out")
	}
	return &fields{r: r, at: at, of: n}
}

func typeName(n *node) string { return object.TypeName(n.kind) }

// path is that of a field.
func (f *fields) path(name string) string { return object.Member(f.at, name) }

func (f *fields) faultf(name, format string, args ...any) {
	f.r.faultf(f.path(name), format, args...)
}

// get returns a field, or nil if it is absent or null.
func (f *fields) get(name string) *node {
	f.known = append(f.known, name)
	n := f.of.member(name)
	if n == nil || n.kind == 'n' {
		return nil
	}
	return n
}

// typed is get for a field of a type; others are reported, and count as absent.
func (f *fields) typed(name string, kind byte, wanted string) *node {
	n := f.get(name)
	if n != nil && n.kind != kind {
		f.faultf(name, "must be %s, not %s", wanted, typeName(n))
		return nil
	}
	return n
}

// either returns the one of two names of a field that is used.
func (f *fields) either(name, alias string) string {
	switch {
	case f.get(alias) == nil:
		f.known = slices.DeleteFunc(f.known, func(one string) bool { return one == alias }) // is not suggested
		f.known = append(f.known, name)
		return name
	case f.get(name) != nil:
		f.faultf(alias, "is another name of %s, which is set as well; leave one of them out", name)
	}
	return alias
}

// unknown reports the fields that nobody has asked for. hints say what to do about some
// of them.
func (f *fields) unknown(hints map[string]string) (any bool) {
	if f.of == nil {
		return false
	}
	for _, name := range f.of.names {
		if slices.Contains(f.known, name) {
			continue
		}
		any = true
		near := didyoumean.Nearest(name, f.known)
		at := entry(f.at, name)
		switch {
		case hints[name] != "":
			f.r.faultf(at, "is not supported; %s", hints[name])
		case near != "":
			f.r.faultf(at, "unknown field; did you mean %q?", near)
		default:
			known := slices.Compact(slices.Sorted(slices.Values(f.known)))
			f.r.faultf(at, "unknown field; known here: %s", strings.Join(known, ", "))
		}
	}
	return any
}

// object returns the fields of an object; absent ones have nothing but defaults.
func (f *fields) object(name string) *fields {
	if n := f.get(name); n != nil {
		if below := f.r.object(n, f.path(name)); below != nil {
			return below
		}
	}
	return &fields{r: f.r, at: f.path(name)}
}

func (f *fields) items(name string) []*node {
	n := f.typed(name, '[', "an array")
	if n == nil {
		return nil
	}
	return n.below
}

// text returns a text of at most most bytes without control characters, and def if it is
// absent.
func (f *fields) text(name, def string, most int) string {
	n := f.typed(name, '"', "a string")
	if n == nil {
		return def
	}
	f.r.checkText(f.path(name), n.text, most)
	return n.text
}

func (r *reader) checkText(at, text string, most int) {
	switch {
	case len(text) > most:
		r.faultf(at, "has %d bytes; at most %d are allowed", len(text), most)
	case hasControl(text):
		r.faultf(at, "must not hold control characters")
	}
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c < 0x20 || c == 0x7f })
}

// required is text for a field that must be set.
func (f *fields) required(name, example string) string {
	n := f.get(name)
	if n == nil || n.kind == '"' && n.text == "" {
		f.faultf(name, "is required: %s", example)
		return ""
	}
	return f.text(name, "", maxTemplate)
}

func (f *fields) yes(name string, def bool) bool {
	n := f.get(name)
	if n == nil {
		return def
	}
	if n.kind != 't' && n.kind != 'f' {
		f.faultf(name, "must be true or false, not %s", typeName(n))
		return def
	}
	return n.kind == 't'
}

// number returns a whole number within bounds.
func (f *fields) number(name string, def, least, most int) int {
	n := f.typed(name, '0', "a whole number")
	if n == nil {
		return def
	}
	number, err := strconv.Atoi(n.text)
	if err != nil || number < least || number > most {
		f.faultf(name, "must be a whole number from %d to %d", least, most)
		return def
	}
	return number
}

// duration returns a duration within bounds.
func (f *fields) duration(name string, def, least, most time.Duration) time.Duration {
	n := f.get(name)
	if n == nil {
		return def
	}
	d, err := time.ParseDuration(n.text)
	switch {
	case n.kind != '"' || err != nil:
		f.faultf(name, `want a duration such as "5s"`)
		return def
	case d < least || d > most:
		f.faultf(name, "must be from %s to %s", short(least), short(most))
		return def
	}
	return d
}

// short writes a duration without the parts that are zero.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// units of sizes, the largest first.
var units = [...]struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// size returns a number of bytes within bounds.
func (f *fields) size(name string, def, least, most int64) int64 {
	n := f.get(name)
	if n == nil {
		return def
	}
	size, ok := parseSize(n)
	switch {
	case !ok:
		f.faultf(name, `want bytes or a size such as "1MiB"`)
		return def
	case size < least || size > most:
		f.faultf(name, "must be from %s to %s", sizeText(least), sizeText(most))
		return def
	}
	return size
}

func parseSize(n *node) (int64, bool) {
	text, unit := n.text, int64(1)
	switch n.kind {
	case '0':
	case '"':
		at := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
		if at <= 0 {
			return 0, false
		}
		i := slices.IndexFunc(units[:], func(u struct {
			name string
			size int64
		},
		) bool {
			return u.name == text[at:]
		})
		if i < 0 {
			return 0, false
		}
		text, unit = text[:at], units[i].size
	default:
		return 0, false
	}
	size, err := strconv.ParseInt(text, 10, 64)
	return size * unit, err == nil && size >= 0 && size <= 1<<32
}

func sizeText(size int64) string {
	for _, u := range units {
		if size != 0 && size%u.size == 0 {
			return strconv.FormatInt(size/u.size, 10) + u.name
		}
	}
	return "0B"
}

// oneOf returns one of several texts, the first of which is the default.
func (f *fields) oneOf(name string, allowed ...string) string {
	n := f.typed(name, '"', "a string")
	if n == nil {
		return allowed[0]
	}
	if !slices.Contains(allowed, n.text) {
		f.faultf(name, "%s is unknown; want %s%s", quote(n.text), list(allowed), meant(n.text, allowed))
		return allowed[0]
	}
	return n.text
}

func meant(text string, allowed []string) string {
	if near := didyoumean.Nearest(text, allowed); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// list writes a, b or c.
func list(texts []string) string {
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// quote quotes a text for a message, shortened.
func quote(text string) string {
	const most = 64
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// template returns a template, def if it is absent.
func (f *fields) template(name string, def Template) Template {
	n := f.typed(name, '"', "a string")
	if n == nil {
		return def
	}
	f.r.compileTemplate(f.path(name), n.text)
	return Template(n.text)
}

func (r *reader) compileTemplate(at, text string) {
	if len(text) > maxTemplate {
		r.faultf(at, "has %d bytes; at most %d are allowed", len(text), maxTemplate)
		return
	}
	if !r.options.SkipScripts {
		_, err := mapping.CompileTemplate(text)
		r.mappingFault(at, err)
	}
}

// script returns a script, "" if it is absent.
func (f *fields) script(name string) string {
	n := f.typed(name, '"', "a string")
	if n == nil {
		return ""
	}
	f.r.compile(f.path(name), n.text)
	return n.text
}

func (r *reader) compile(at, text string) {
	if len(text) > maxScript {
		r.faultf(at, "has %d bytes; at most %d are allowed", len(text), maxScript)
		return
	}
	if !r.options.SkipScripts {
		_, err := mapping.Compile(text)
		r.mappingFault(at, err)
	}
}

func (r *reader) mappingFault(at string, err error) {
	if err == nil {
		return
	}
	message := err.Error()
	if problem, ok := err.(*mapping.Problem); ok {
		message = problem.Message
		if problem.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", at, problem.Line, problem.Column)
		}
	}
	r.faultf(at, "%s", strings.Join(strings.Fields(message), " "))
}

// secret returns a secret. Messages about it never quote it.
func (f *fields) secret(name string) Secret { return Secret(f.text(name, "", maxTemplate)) }

// verbs returns a list of HTTP methods.
func (f *fields) verbs(name string, def ...string) (verbs []string) {
	n := f.typed(name, '[', "an array of HTTP methods")
	if n == nil {
		return def
	}
	if len(n.below) == 0 {
		f.faultf(name, "is empty; name at least one HTTP method, or leave it out")
	}
	for i, one := range n.below {
		at := object.Item(f.path(name), i)
		switch {
		case !f.r.isVerb(one, at):
		case slices.Contains(verbs, one.text):
			f.r.faultf(at, "%s stands twice; leave one of them out", one.text)
		default:
			verbs = append(verbs, one.text)
		}
	}
	return verbs
}

// methods are those that can be named.
var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}

func (r *reader) isVerb(n *node, at string) bool {
	switch {
	case n.kind != '"':
		r.faultf(at, "must be a string, not %s", typeName(n))
	case slices.Contains(methods, n.text):
		return true
	case slices.Contains(methods, strings.ToUpper(n.text)):
		r.faultf(at, "%s is unknown; write %s", quote(n.text), strings.ToUpper(n.text))
	default:
		r.faultf(at, "%s is unknown; want %s", quote(n.text), list(methods))
	}
	return false
}

func (f *fields) verb(name, def string) string {
	n := f.get(name)
	if n == nil || !f.r.isVerb(n, f.path(name)) {
		return def
	}
	return n.text
}

// framing are the headers that senders set themselves.
var framing = []string{"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}

// headers returns an object from name to template, in the order in which it is written.
func (f *fields) headers(name string) (headers []Header) {
	n := f.get(name)
	if n == nil {
		return nil
	}
	below := f.r.object(n, f.path(name))
	if below == nil {
		return nil
	}
	f.r.faults.Count(f.r.full(f.path(name)), len(n.names), maxHeaders)
	seen := make(map[string]bool)
	for i, header := range n.names {
		at, lower := entry(below.at, header), strings.ToLower(header)
		value := n.below[i]
		switch {
		case !http1.IsToken(header):
			f.r.faultf(at, "must be a header name, such as Content-Type")
		case slices.Contains(framing, lower):
			f.r.faultf(at, "is set by the gateway; leave it out")
		case seen[lower]:
			f.r.faultf(at, "stands twice in different case; leave one of them out")
		case value.kind != '"':
			f.r.faultf(at, "must be a string, not %s", typeName(value))
		case hasControl(strings.ReplaceAll(value.text, "\t", " ")) && !strings.Contains(value.text, "${!"):
			f.r.faultf(at, "must not hold control characters")
		default:
			f.r.compileTemplate(at, value.text)
			headers = append(headers, Header{Name: header, Value: Template(value.text)})
		}
		seen[lower] = true
	}
	return headers
}

// statuses returns a list of HTTP statuses.
func (f *fields) statuses(name string, def ...int) []int {
	n := f.typed(name, '[', "an array of statuses")
	if n == nil {
		return def
	}
	var statuses []int
	for i, one := range n.below {
		status, err := strconv.Atoi(one.text)
		if one.kind != '0' || err != nil || status < 200 || status > 599 {
			f.r.faultf(object.Item(f.path(name), i), "must be a status from 200 to 599")
			continue
		}
		statuses = append(statuses, status)
	}
	return statuses
}
