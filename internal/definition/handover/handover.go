// Package handover is how a definition names other APIs of the same gateway: as
// targets, in URLs that begin with svc://, and as versions.
package handover

import (
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Scheme begins the URL of a target that is another API.
const Scheme = "svc://"

// Self names the API itself, in a URL and among its versions.
const Self = "self"

// Is tells whether a target is another API.
func Is(target string) bool { return strings.HasPrefix(target, Scheme) }

// Split takes a URL apart: the name of an API, and the path and query behind it,
// which begin with a slash or a question mark when there are any.
func Split(target string) (name, rest string) {
	name = strings.TrimPrefix(target, Scheme)
	if i := strings.IndexAny(name, "/?#"); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	return name, rest
}

// NameKey returns the form in which names of APIs are compared with those in URLs:
// in lower case, with a dash for whatever is neither a letter nor a digit.
func NameKey(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r | 0x20
		}
		return '-'
	}, name)
}

// switches are parameters of the query by which comparable gateways are told how
// to hand a call over. They must not go to the API as if they were its own.
var switches = [...]string{"method", "loop_limit", "check_limits"}

// Check says what is wrong with the URL of a target that is another API, "" for
// nothing.
func Check(target string) string {
	name, rest := Split(target)
	if wrong := checkName(name); wrong != "" {
		return "must name an API behind " + Scheme + ", as in svc://orders/v2: " + wrong
	}
	u, err := url.Parse("http://api" + rest)
	switch {
	case strings.Contains(rest, "#"):
		return "must not hold a fragment (#), which is never sent"
	case err != nil:
		return "holds a path or query that is not well-formed: percent-encode what is neither a letter nor a digit"
	case strings.ContainsAny(u.RawQuery, " \"<>\\^`{|}"):
		return "holds a character in its query that must be percent-encoded"
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return "must not hold the segment " + segment
		}
	}
	query := u.Query()
	for _, s := range switches {
		if query.Has(s) {
			return "must not hold the parameter " + s + ": a call is handed over with its method, at most five times, and limits count it once"
		}
	}
	return ""
}

// maxName is how long the name of an API may be, in bytes.
const maxName = 256

func checkName(name string) string {
	switch {
	case name == "":
		return "there is none"
	case len(name) > maxName:
		return "this one is too long"
	}
	for _, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && c != '-' && c != '_' && c != '.' {
			return "by its id, or by its name with a dash for each character that is neither a letter nor a digit"
		}
	}
	return ""
}

// Versions are the versions of an API that are other APIs.
type Versions struct {
	Name    string            // that the API itself has as a version, beside Self
	Default string            // of calls that name none; "" for none
	Others  map[string]string // ids or names of APIs, by the versions that they are
}

// Has tells whether there is a version of a name.
func (v Versions) Has(name string) bool { return v.IsSelf(name) || v.Others[name] != "" }

// IsSelf tells whether a name is that of the API itself.
func (v Versions) IsSelf(name string) bool { return name == Self || name != "" && name == v.Name }

// Names lists all versions: the API itself, then the others in order.
func (v Versions) Names() []string {
	own := v.Name
	if own == "" {
		own = Self
	}
	return append([]string{own}, object.SortedKeys(v.Others)...)
}

// maxVersions is how many other APIs may be versions of one.
const maxVersions = 1000

// Check returns what is wrong with versions, with paths below definition.
func (v Versions) Check() []object.Fault {
	var f object.Faults
	f.Count("versions", len(v.Others), maxVersions)
	for _, name := range object.SortedKeys(v.Others) {
		at := object.Entry("versions", name)
		switch {
		case name == "":
			f.Add(at, "must have a name, by which calls ask for it")
		case v.IsSelf(name):
			f.Add(at, "is the name of the API itself as a version (definition.name, or self)")
		}
		if wrong := checkName(v.Others[name]); wrong != "" {
			f.Add(at, "must name an API: "+wrong)
		}
	}
	if v.Default != "" && !v.Has(v.Default) {
		f.Addf("default", "must be the name of a version: one of %s", strings.Join(v.Names(), ", "))
	}
	return f
}
