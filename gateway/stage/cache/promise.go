package cache

import (
	"bytes"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/internal/http1"
)

// promise is what a response says about caching (RFC 9111, section 5).
type promise struct {
	forbidden bool // it may not be cached, or not by a shared cache
	public    bool // it may be cached although its request had credentials
	keep      bool // the upstream allows it, without a lifetime
	events    bool // it is an event stream

	maxAge, shared, own time.Duration // -1: not said; own is in the header of the definition
	expires, date       time.Time
	age                 time.Duration

	vary []string // names of the headers of Vary in the form of normal, sorted
}

// read reads header lines. ttl is the name of the header with a lifetime.
func (p *promise) read(lines []byte, ttl string) {
	p.maxAge, p.shared, p.own = -1, -1, -1
	encoded := false
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = http1.Trim(value)
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
			p.events = p.events || http1.HasPrefix(value, "text/event-stream")
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
	if encoded && !slices.Contains(p.vary, "accept-encoding") {
		p.vary = append(p.vary, "accept-encoding") // some upstreams omit it
	}
	slices.Sort(p.vary)
	p.vary = slices.Compact(p.vary)
}

func (p *promise) readControl(list []byte) {
	for len(list) > 0 {
		var one []byte
		one, list = http1.CutElement(list)
		name, value, _ := bytes.Cut(one, []byte("="))
		name, value = http1.Trim(name), bytes.Trim(http1.Trim(value), `"`)
		switch {
		case http1.EqualFold(name, "no-store"), http1.EqualFold(name, "private"), http1.EqualFold(name, "no-cache"):
			p.forbidden = true
		case http1.EqualFold(name, "public"), http1.EqualFold(name, "must-revalidate"):
			p.public = true
		case http1.EqualFold(name, "s-maxage"):
			p.shared, p.public = seconds(value, 0), true
		case http1.EqualFold(name, "max-age"):
			p.maxAge = seconds(value, 0)
		}
	}
}

// maxVary is how many headers Vary may name in a cacheable response.
const maxVary = 16

func (p *promise) readVary(list []byte) {
	for len(list) > 0 {
		var one []byte
		one, list = http1.CutElement(list)
		if len(one) == 1 && one[0] == '*' || len(p.vary) == maxVary {
			p.forbidden = true
			return
		}
		if len(one) > 0 {
			p.vary = append(p.vary, normal(string(one)))
		}
	}
}

// lifetime returns how long the response is fresh after it was made.
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

// seconds parses a number of seconds. It returns wrong for other text.
func seconds(text []byte, wrong time.Duration) time.Duration {
	const most = 1 << 31
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return wrong
	}
	return time.Duration(min(n, most)) * time.Second
}

// httpTime parses a date. A malformed date is long past.
func httpTime(text []byte) time.Time {
	t, err := http.ParseTime(string(text))
	if err != nil {
		return time.Unix(0, 0)
	}
	return t
}

// kept returns the header lines to cache, without those that are written anew.
func (p *promise) kept(lines []byte) []byte {
	kept := make([]byte, 0, len(lines))
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n') + 1
		line := lines[:end]
		lines = lines[end:]
		if name, _, _ := bytes.Cut(line, []byte(":")); !http1.EqualFold(name, "age") && !http1.EqualFold(name, "x-cache") {
			kept = append(kept, line...)
		}
	}
	return bytes.Clone(kept) // without spare capacity
}

// within returns the validators in header lines.
func (p *promise) within(lines []byte) (etag, modified []byte) {
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case http1.EqualFold(name, "etag"):
			etag = http1.Trim(value)
		case http1.EqualFold(name, "last-modified"):
			modified = http1.Trim(value)
		}
	}
	return etag, modified
}

// holds reports whether a list of directives contains one.
func holds(list []byte, directive string) bool {
	for len(list) > 0 {
		var one []byte
		if one, list = http1.CutElement(list); http1.EqualFold(one, directive) {
			return true
		}
	}
	return false
}
