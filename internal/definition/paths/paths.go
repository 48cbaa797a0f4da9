// Package paths reads what a version of an API says about single paths: those
// that skip governance, are the only ones or are refused, those that are answered
// without an upstream, and how large a body they take.
package paths

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// MaxEntries is how many entries each list of one version may have.
const MaxEntries = 10_000

// The lists of extended_paths that this package reads.
const (
	IgnoredList = "ignored"
	BlackList   = "black_list"
	WhiteList   = "white_list"
	MockList    = "mock_response"
	SizeList    = "size_limits"
)

// A Call says which calls an entry is about.
type Call struct {
	At         string // where the entry stands, as in paths.ignored[0]
	Path       string // pattern of the path
	Method     string // in upper case; "" is every method
	IgnoreCase bool   // letters of the path match in either case
}

// A Rule is an entry of a list that decides whether calls pass.
type Rule struct {
	Call
	Reply *Reply // not nil: calls are answered with it
}

// A Mock answers calls in place of the upstream.
type Mock struct {
	Call
	Reply Reply
}

// A Size bounds the bodies of calls.
type Size struct {
	Call
	Bytes int64 // above 0
}

// Rules is what a version says about single paths. Within a list the order is
// that of the definition, and entries that are disabled are left out.
type Rules struct {
	Ignored, Black, White []Rule
	Mocks                 []Mock
	Sizes                 []Size
}

// Decides tells whether there is a list that decides whether calls pass.
func (r *Rules) Decides() bool { return len(r.Ignored)+len(r.Black)+len(r.White) > 0 }

// Doubts lists the entries of the ignored list that open all of an API by accident:
// paths are also matched with the listen path in front, as an entry that repeats
// it begins.
func (r *Rules) Doubts(listenPath string) []object.Fault {
	var f object.Faults
	listens := strings.Trim(listenPath, "/")
	for _, rule := range r.Ignored {
		if one := strings.Trim(rule.Path, "/"); one != "" && one == listens {
			f.Addf(rule.At, "takes every path of the API, as paths are matched with the listen path %s too, so that nobody needs a key; "+
				`write ^%s$ for this path alone, or / for all`, listenPath, rule.Path)
		}
	}
	return f
}

// Simple are the lists of a version that does not use extended_paths. Their
// entries are about every method.
type Simple struct{ Ignored, Black, White []string }

// ReadSimple reads the lists of paths. It returns all that is wrong with them, by
// its path below the version, beside the entries that are right.
func ReadSimple(s Simple) (*Rules, []object.Fault) {
	r := &reader{}
	for _, list := range []struct {
		name  string
		paths []string
		into  *[]Rule
	}{
		{"paths.ignored", s.Ignored, &r.rules.Ignored},
		{"paths.black_list", s.Black, &r.rules.Black},
		{"paths.white_list", s.White, &r.rules.White},
	} {
		r.faults.Count(list.name, len(list.paths), MaxEntries)
		for i, path := range list.paths {
			call := Call{At: object.Item(list.name, i), Path: path}
			if r.path(call.At, path) {
				*list.into = append(*list.into, Rule{Call: call})
			}
		}
	}
	return &r.rules, r.faults
}

// ReadExtended reads the lists of extended_paths, a JSON object or nothing. It
// returns all that is wrong with them, by its path below the version, beside the
// entries that are right.
func ReadExtended(extended json.RawMessage) (*Rules, []object.Fault) {
	var lists map[string]json.RawMessage
	if len(extended) > 0 && extended[0] == '{' {
		_ = json.Unmarshal(extended, &lists) // what is not valid was refused with the object around it
	}
	r := &reader{}
	r.rules.Ignored = r.list(IgnoredList, lists)
	r.rules.Black = r.list(BlackList, lists)
	r.rules.White = r.list(WhiteList, lists)
	r.mocks(lists)
	r.sizes(lists)
	return &r.rules, r.faults
}

// A reader gathers entries, and what is wrong with others.
type reader struct {
	rules  Rules
	faults object.Faults
}

// path tells whether text is a pattern.
func (r *reader) path(at, text string) bool {
	err := pattern.Check(text)
	if err != nil {
		r.faults.Add(at, patternMessage(err))
	}
	return err == nil
}

func patternMessage(err error) string {
	return "is neither a path such as /users/{id} nor an expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

// method returns a method as calls have it. Those of HTTP are in upper case.
func (r *reader) method(at, name string) (string, bool) {
	if name != "" && !isToken(name) {
		r.faults.Add(at, "must be a method such as GET, or be left out for every method")
		return "", false
	}
	return strings.ToUpper(name), true
}

func isToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// elements goes through a list of extended_paths, each element with where it
// stands.
func (r *reader) elements(name string, lists map[string]json.RawMessage) iter.Seq2[string, json.RawMessage] {
	at, list := "extended_paths."+name, lists[name]
	var all []json.RawMessage
	if len(list) > 0 && json.Unmarshal(list, &all) != nil {
		r.faults.Add(at, "must be an array, not "+object.TypeName(list[0]))
	}
	r.faults.Count(at, len(all), MaxEntries)
	return func(yield func(string, json.RawMessage) bool) {
		for i, one := range all {
			if !yield(object.Item(at, i), one) {
				return
			}
		}
	}
}
