package definition

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

const (
	maxTriggers = 100     // of one rule
	maxMatches  = 100     // of one trigger
	maxRewrite  = 4 << 10 // bytes of rewrite_to
	maxGroups   = 31      // of one expression
)

// RewriteRule replaces the path and query of a call.
type RewriteRule struct {
	PathMatch
	// Regular expression that is searched for in the path with the query, at most 4096 bytes and 31 groups.
	// Example: "^/users/(\\d+)$"
	Match string `json:"match_pattern,omitempty"`
	// New path and query, or a URL of another host or API; $1 is the first group of match_pattern. May hold $svc_context and $svc_meta variables. At most 4096 bytes.
	// Example: "/v2/users/$1"
	To string `json:"rewrite_to,omitempty"`
	// Other rewrites, at most 100; the first whose conditions are met counts.
	// Example: [{"on": "any", "options": {"header_matches": {"X-Beta": {"match_rx": "^on$"}}}, "rewrite_to": "/beta/users/$1"}]
	Triggers []RewriteTrigger `json:"triggers,omitempty"`
	Unknown  Unknown          `json:"-"`
}

// RewriteTrigger is another rewrite, for calls that meet its conditions.
type RewriteTrigger struct {
	// Whether all (default) or any of the conditions must be met.
	// Example: "any"
	On string `json:"on,omitempty" oneof:"all any"`
	// The conditions, at most 100.
	// Example: {"header_matches": {"X-Beta": {"match_rx": "^on$"}}}
	Options RewriteConditions `json:"options,omitzero"`
	// New path and query, as rewrite_to of the rule.
	// Example: "/beta/users/$1"
	To      string  `json:"rewrite_to,omitempty"`
	Unknown Unknown `json:"-"`
}

// RewriteConditions are what a trigger looks at, by name.
type RewriteConditions struct {
	// Conditions on request headers.
	// Example: {"X-Beta": {"match_rx": "^on$"}}
	Headers map[string]RewriteCondition `json:"header_matches,omitempty"`
	// Conditions on query parameters.
	// Example: {"lang": {"match_rx": "^de"}}
	Query map[string]RewriteCondition `json:"query_val_matches,omitempty"`
	// Conditions that a segment of the path must meet; the name is for captures only.
	// Example: {"user": {"match_rx": "^\\d+$"}}
	Path map[string]RewriteCondition `json:"path_part_matches,omitempty"`
	// Conditions on meta data of the key.
	// Example: {"tenant": {"match_rx": "^acme$"}}
	Meta map[string]RewriteCondition `json:"session_meta_matches,omitempty"`
	// Conditions on context variables.
	// Example: {"remote_addr": {"match_rx": "^10\\."}}
	Context map[string]RewriteCondition `json:"request_context_matches,omitempty"`
	// Conditions on the body. Not supported: must be empty.
	// Example: {}
	Payload json.RawMessage `json:"payload_matches,omitempty"`
	Unknown Unknown         `json:"-"`
}

// RewriteCondition is what a value must be.
type RewriteCondition struct {
	// Regular expression that the value must match.
	// Example: "^on$"
	Match string `json:"match_rx,omitempty"`
	// Whether the value must not match.
	Reverse bool    `json:"reverse,omitempty"`
	Unknown Unknown `json:"-"`
}

func (r *RewriteRule) check(f *object.Faults, at string) {
	r.checkStandard(f, at)
	groups := checkExpression(f, at+".match_pattern", r.Match)
	checkRewrite(f, at+".rewrite_to", r.To, groups)
	f.Count(at+".triggers", len(r.Triggers), maxTriggers)
	for i := range r.Triggers {
		r.Triggers[i].check(f, object.Item(at+".triggers", i), groups)
	}
}

func (t *RewriteTrigger) check(f *object.Faults, at string, groups int) {
	if t.On != "" && t.On != "all" && t.On != "any" {
		f.Add(at+".on", `must be "all" or "any"`)
	}
	checkRewrite(f, at+".rewrite_to", t.To, groups)
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
	conditions map[string]RewriteCondition
}

func (c *RewriteConditions) lists() []namedConditions {
	return []namedConditions{
		{"header_matches", c.Headers},
		{"query_val_matches", c.Query},
		{"path_part_matches", c.Path},
		{"session_meta_matches", c.Meta},
		{"request_context_matches", c.Context},
	}
}

// checkExpression returns how many groups an expression has, -1 if it is wrong.
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

// SplitRewrite splits the target of a rewrite: origin is another host or API, such as
// https://other.example:8443 or svc://orders, "" for the usual upstream; rest is the
// path and query there.
func SplitRewrite(to string) (origin, rest string) {
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

// A RewriteTarget is a host or an API that rewrites name, and that is called in place
// of the upstream.
type RewriteTarget struct {
	URL string // without a path
	At  string // path, below extended_paths, of the rewrite that names it first
}

// RewriteTargets lists the hosts and APIs that rewrites name, each once, in order.
func RewriteTargets(rules []RewriteRule) (all []RewriteTarget) {
	seen := make(map[string]bool)
	add := func(to, at string) {
		if origin, _ := SplitRewrite(to); origin != "" && !seen[origin] {
			seen[origin] = true
			all = append(all, RewriteTarget{URL: origin, At: at + ".rewrite_to"})
		}
	}
	for i := range rules {
		at := object.Item("url_rewrites", i)
		add(rules[i].To, at)
		for j := range rules[i].Triggers {
			add(rules[i].Triggers[j].To, object.Item(at+".triggers", j))
		}
	}
	return all
}

// checkOrigin returns what is wrong with the scheme and host of a URL that is
// rewritten to, or "". No part of a request may be in it: the client would choose
// which host is called.
func checkOrigin(to string) string {
	origin, _ := SplitRewrite(to)
	switch {
	case origin == "":
		return "must be a path below the target, or a URL that begins with http://, https:// or svc://"
	case strings.Contains(origin, "$"):
		return "must name the host as it is: nothing of a request ($1, $svc_context, $svc_meta) may choose it; put a slash behind the host when the path begins with one of these"
	case IsInternal(to):
		return CheckInternal(to)
	}
	return checkURL(origin)
}

// checkRewrite checks what a URL is rewritten to. groups is how many groups it may
// name, -1 when that is not known.
func checkRewrite(f *object.Faults, at, text string, groups int) {
	switch {
	case text == "":
		f.Add(at, "is required: a path, such as /v2/users/$1?full=true")
		return
	case len(text) > maxRewrite:
		f.Addf(at, "has %d bytes; at most %d are allowed", len(text), maxRewrite)
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
	_, rest := SplitRewrite(text)
	path, _, _ := strings.Cut(rest, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			f.Addf(at, "must not hold the segment %q", segment)
			break
		}
	}
	for _, found := range groupReference.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(found[1]); groups >= 0 && (err != nil || n > groups) {
			f.Addf(at, "refers to $%s, and match_pattern has %d groups", found[1], groups)
			break
		}
	}
}
