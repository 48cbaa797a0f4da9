package transform

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/handover"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
	"github.com/sluicegate/sluice/internal/definition/upstreams"
)

const (
	maxTriggers = 100     // of one rule
	maxMatches  = 100     // of one trigger
	maxTarget   = 4 << 10 // bytes of rewrite_to
	maxGroups   = 31      // of one expression
)

// A RewriteRule puts another path and query in place of a call's.
type RewriteRule struct {
	Calls
	Match    string    `json:"match_pattern"` // an expression, found in the path with the query behind it
	To       string    `json:"rewrite_to"`    // path and query, or a URL of another host or API; $1 is what the first group of the expression matched; may hold context variables
	Triggers []Trigger `json:"triggers,omitempty"`
}

// A Trigger is another place to rewrite to, for calls that meet its conditions.
// The first one that does counts.
type Trigger struct {
	On      string     `json:"on,omitempty"` // all (default) or any of the conditions
	Options Conditions `json:"options"`
	To      string     `json:"rewrite_to"`
}

// Conditions are what a trigger looks at, by name.
type Conditions struct {
	Headers map[string]Condition `json:"header_matches,omitempty"`
	Query   map[string]Condition `json:"query_val_matches,omitempty"`
	Path    map[string]Condition `json:"path_part_matches,omitempty"`    // any segment of the path; the name is for captures only
	Meta    map[string]Condition `json:"session_meta_matches,omitempty"` // of the key
	Context map[string]Condition `json:"request_context_matches,omitempty"`
	Payload json.RawMessage      `json:"payload_matches,omitempty"` // not supported
}

// A Condition is what a value has to be.
type Condition struct {
	Match   string `json:"match_rx"`
	Reverse bool   `json:"reverse,omitempty"` // it has to be anything else
}

func (r *RewriteRule) check(f *object.Faults, at string) {
	r.Calls.check(f, at)
	groups := checkExpression(f, at+".match_pattern", r.Match)
	checkTarget(f, at+".rewrite_to", r.To, groups)
	f.Count(at+".triggers", len(r.Triggers), maxTriggers)
	for i := range r.Triggers {
		r.Triggers[i].check(f, object.Item(at+".triggers", i), groups)
	}
}

func (t *Trigger) check(f *object.Faults, at string, groups int) {
	if t.On != "" && t.On != "all" && t.On != "any" {
		f.Add(at+".on", `must be "all" or "any"`)
	}
	checkTarget(f, at+".rewrite_to", t.To, groups)
	at += ".options"
	if p := string(t.Options.Payload); p != "" && p != "null" && p != "{}" && p != `{"match_rx":""}` {
		f.Add(at+".payload_matches", "asks for a feature that this release does not have: rewriting by what the body holds; leave it out")
	}
	count := 0
	for _, list := range t.Options.lists() {
		for _, name := range object.SortedKeys(list.conditions) {
			count++
			checkExpression(f, object.Entry(at+"."+list.name, name)+".match_rx", list.conditions[name].Match)
		}
	}
	switch {
	case count == 0:
		f.Add(at, "must hold a condition, such as header_matches")
	case count > maxMatches:
		f.Addf(at, "has %d conditions; at most %d are allowed", count, maxMatches)
	}
}

type namedConditions struct {
	name       string
	conditions map[string]Condition
}

func (c *Conditions) lists() []namedConditions {
	return []namedConditions{
		{"header_matches", c.Headers},
		{"query_val_matches", c.Query},
		{"path_part_matches", c.Path},
		{"session_meta_matches", c.Meta},
		{"request_context_matches", c.Context},
	}
}

// checkExpression returns how many groups an expression has, -1 when it is none.
func checkExpression(f *object.Faults, at, text string) int {
	switch {
	case text == "":
		f.Add(at, `is required: a regular expression, such as ^/users/(\d+)$`)
		return -1
	case len(text) > pattern.MaxLength:
		f.Addf(at, "is %d bytes long; at most %d are allowed", len(text), pattern.MaxLength)
		return -1
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		f.Add(at, err.Error())
		return -1
	}
	if n := expr.NumSubexp(); n > maxGroups {
		f.Addf(at, "has %d groups; at most %d are allowed: (?:…) groups without one", n, maxGroups)
	}
	return expr.NumSubexp()
}

var (
	groupReference = regexp.MustCompile(`\$(\d+)`)
	badEscape      = regexp.MustCompile(`%(?:[^0-9A-Fa-f]|.[^0-9A-Fa-f])`)
	fullURL        = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:|^//`)
)

// SplitTarget takes what a URL is rewritten to apart: where another host or another
// API is called, such as https://other.example:8443 or svc://orders, "" for the
// upstream that would be called anyway; and the path and query there.
func SplitTarget(to string) (origin, rest string) {
	scheme, behind, ok := strings.Cut(to, "://")
	if !ok || !fullURL.MatchString(to) {
		return "", to
	}
	end := strings.IndexAny(behind, "/?#")
	if end < 0 {
		end = len(behind)
	}
	end += len(scheme) + len("://")
	return to[:end], to[end:]
}

// A Place is a host or an API that rewrites name, and that is called in place of
// the upstream.
type Place struct {
	URL string // without a path
	At  string // path, below extended_paths, of the rewrite that names it first
}

// Places lists what the rewrites name, each once, in their order.
func (r *Rules) Places() (all []Place) {
	seen := make(map[string]bool)
	add := func(to, at string) {
		if origin, _ := SplitTarget(to); origin != "" && !seen[origin] {
			seen[origin] = true
			all = append(all, Place{URL: origin, At: at + ".rewrite_to"})
		}
	}
	for i := range r.Rewrites {
		at := object.Item("url_rewrites", i)
		add(r.Rewrites[i].To, at)
		for j := range r.Rewrites[i].Triggers {
			add(r.Rewrites[i].Triggers[j].To, object.Item(at+".triggers", j))
		}
	}
	return all
}

// checkOrigin says what is wrong with the beginning of a URL that is rewritten to,
// "" for nothing. No part of a request may take part in it: who calls would choose
// who is called.
func checkOrigin(to string) string {
	origin, _ := SplitTarget(to)
	switch {
	case origin == "":
		return "must be a path below the target, or a URL that begins with http://, https:// or svc://"
	case strings.Contains(origin, "$"):
		return "must name the host as it is: nothing of a request ($1, $svc_context, $svc_meta) may choose it; put a slash behind the host when the path begins with one of these"
	case handover.Is(to):
		return handover.Check(to)
	}
	return upstreams.CheckURL(origin)
}

// checkTarget checks what a URL is rewritten to. groups is how many groups it may
// name, -1 when that is not known.
func checkTarget(f *object.Faults, at, text string, groups int) {
	switch {
	case text == "":
		f.Add(at, "is required: a path, such as /v2/users/$1?full=true")
		return
	case len(text) > maxTarget:
		f.Addf(at, "has %d bytes; at most %d are allowed", len(text), maxTarget)
	case fullURL.MatchString(text):
		f.Add(at, checkOrigin(text))
	}
	for i, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>\\^`", c) >= 0 {
			f.Addf(at, "must not hold %q (byte %d); write it percent-encoded", c, i)
			break
		}
	}
	if i := badEscape.FindStringIndex(text + "  "); i != nil {
		f.Addf(at, "has a %% at byte %d without two hexadecimal digits behind it; %%25 is a percent sign", i[0])
	}
	_, rest := SplitTarget(text)
	path, _, _ := strings.Cut(rest, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			f.Addf(at, "must not hold the segment %q", segment)
			break
		}
	}
	for _, found := range groupReference.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(found[1]); groups >= 0 && (err != nil || n > groups) {
			f.Add(at, fmt.Sprintf("refers to $%s, and match_pattern has %d groups", found[1], groups))
			break
		}
	}
}
