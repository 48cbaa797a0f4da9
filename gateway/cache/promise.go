package cache

import (
	"bytes"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/gateway/upstream/field"
)

// promise is what an answer says about being kept (RFC 9111, section 5).
type promise struct {
	forbidden bool // it may not be kept, or not by whoever serves many
	public    bool // it may be kept although its request had credentials
	keep      bool // the upstream asks for it, without saying for how long
	events    bool // it is an event stream

	maxAge, shared, own time.Duration // -1: not said; own is in the header that the definition names
	expires, date       time.Time
	age                 time.Duration

	vary []string // canonical names of headers that it depends on, in order
}

// read reads header lines. ttl is the name of the header with a lifetime.
func (p *promise) read(lines []byte, ttl string) {
	p.maxAge, p.shared, p.own = -1, -1, -1
	encoded := false
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = field.Trim(value)
		switch key := textproto.CanonicalMIMEHeaderKey(string(name)); key {
		case "Cache-Control":
			p.readControl(value)
		case "Pragma":
			p.forbidden = p.forbidden || holds(value, "no-cache")
		case "Set-Cookie", "Set-Cookie2":
			p.forbidden = true
		case "Vary":
			p.readVary(value)
		case "Content-Encoding":
			encoded = true
		case "Content-Type":
			p.events = p.events || field.HasPrefix(value, "text/event-stream")
		case "Age":
			p.age = max(p.age, seconds(value, 0))
		case "Expires":
			p.expires = httpTime(value)
		case "Date":
			p.date = httpTime(value)
		case "X-Svc-Cache-Action-Set":
			p.keep = string(value) == "1"
		default:
			if key == textproto.CanonicalMIMEHeaderKey(ttl) {
				p.own = seconds(value, 0)
			}
		}
	}
	if encoded && !slices.Contains(p.vary, "Accept-Encoding") {
		p.vary = append(p.vary, "Accept-Encoding") // which some leave unsaid
	}
	slices.Sort(p.vary)
	p.vary = slices.Compact(p.vary)
}

func (p *promise) readControl(list []byte) {
	for len(list) > 0 {
		var one []byte
		one, list = field.CutElement(list)
		name, value, _ := bytes.Cut(one, []byte("="))
		name, value = field.Trim(name), bytes.Trim(field.Trim(value), `"`)
		switch {
		case field.EqualFold(name, "no-store"), field.EqualFold(name, "private"), field.EqualFold(name, "no-cache"):
			p.forbidden = true
		case field.EqualFold(name, "public"), field.EqualFold(name, "must-revalidate"):
			p.public = true
		case field.EqualFold(name, "s-maxage"):
			p.shared, p.public = seconds(value, 0), true
		case field.EqualFold(name, "max-age"):
			p.maxAge = seconds(value, 0)
		}
	}
}

// maxVary is how many headers an answer may depend on that is kept.
const maxVary = 16

func (p *promise) readVary(list []byte) {
	for len(list) > 0 {
		var one []byte
		one, list = field.CutElement(list)
		if len(one) == 1 && one[0] == '*' || len(p.vary) == maxVary {
			p.forbidden = true
			return
		}
		if len(one) > 0 {
			p.vary = append(p.vary, textproto.CanonicalMIMEHeaderKey(string(one)))
		}
	}
}

// lifetime is how long the answer says that it is good, from when it was made.
func (p *promise) lifetime() (time.Duration, bool) {
	for _, said := range [...]time.Duration{p.own, p.shared, p.maxAge} {
		if said >= 0 {
			return said, true
		}
	}
	if p.expires.IsZero() {
		return 0, false
	}
	from := p.date
	if from.IsZero() {
		from = time.Now()
	}
	return max(0, p.expires.Sub(from)), true
}

// seconds reads a number of seconds; what is none is wrong.
func seconds(text []byte, wrong time.Duration) time.Duration {
	const most = 1 << 31
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return wrong
	}
	return time.Duration(min(n, most)) * time.Second
}

// httpTime reads a date; one that is wrong lies long in the past.
func httpTime(text []byte) time.Time {
	t, err := http.ParseTime(string(text))
	if err != nil {
		return time.Unix(0, 0)
	}
	return t
}

// kept returns the lines that are kept, without those that are told anew.
func (p *promise) kept(lines []byte) []byte {
	kept := make([]byte, 0, len(lines))
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n') + 1
		line := lines[:end]
		lines = lines[end:]
		if name, _, _ := bytes.Cut(line, []byte(":")); !field.EqualFold(name, "age") && !field.EqualFold(name, "x-cache") {
			kept = append(kept, line...)
		}
	}
	return bytes.Clone(kept) // which takes what it needs, and no more
}

// within finds the validators in lines.
func (p *promise) within(lines []byte) (etag, modified []byte) {
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case field.EqualFold(name, "etag"):
			etag = field.Trim(value)
		case field.EqualFold(name, "last-modified"):
			modified = field.Trim(value)
		}
	}
	return etag, modified
}

// holds tells whether a list of directives has one.
func holds(list []byte, directive string) bool {
	for len(list) > 0 {
		var one []byte
		if one, list = field.CutElement(list); field.EqualFold(one, directive) {
			return true
		}
	}
	return false
}
