package definition

import (
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A definition names other APIs of the same gateway as targets, in URLs that begin
// with svc://, and as versions. A call to one is an internal call.

// InternalScheme begins the URL of a target that is another API.
const InternalScheme = "svc://"

// Self names the API itself, in a URL and among its versions.
const Self = "self"

// IsInternal reports whether a target is another API.
func IsInternal(target string) bool { return strings.HasPrefix(target, InternalScheme) }

// SplitInternal splits the URL of another API into its name, and the path and query
// behind it, which begin with a slash or a question mark if there are any.
func SplitInternal(target string) (name, rest string) {
	name = strings.TrimPrefix(target, InternalScheme)
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

// loopParameters are query parameters with which comparable gateways configure an
// internal call. They must not be sent to the API as its own parameters.
var loopParameters = [...]string{"method", "loop_limit", "check_limits"}

// CheckInternal returns what is wrong with the URL of a target that is another API,
// or "".
func CheckInternal(target string) string {
	name, rest := SplitInternal(target)
	if wrong := checkAPIName(name); wrong != "" {
		return "must name an API behind " + InternalScheme + ", as in svc://orders/v2: " + wrong
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
	for _, s := range loopParameters {
		if query.Has(s) {
			return "must not hold the parameter " + s + ": an internal call keeps its method, goes on at most five times, and is counted once"
		}
	}
	return ""
}

const maxAPIName = 256 // bytes

func checkAPIName(name string) string {
	switch {
	case name == "":
		return "there is none"
	case len(name) > maxAPIName:
		return "this one is too long"
	}
	for _, c := range []byte(name) {
		if !isAlnum(c) && c != '-' && c != '_' && c != '.' {
			return "by its id, or by its name with a dash for each character that is neither a letter nor a digit"
		}
	}
	return ""
}

// VersionAPIs are the versions of an API that are other APIs.
type VersionAPIs struct {
	Name    string            // that the API itself has as a version, beside Self
	Default string            // of calls that name none; "" for none
	Others  map[string]string // ids or names of APIs, by the versions that they are
}

// Has reports whether there is a version of that name.
func (v VersionAPIs) Has(name string) bool { return v.IsSelf(name) || v.Others[name] != "" }

// IsSelf reports whether name is the version that is the API itself.
func (v VersionAPIs) IsSelf(name string) bool { return name == Self || name != "" && name == v.Name }

// Names lists all versions: the API itself, then the others in order.
func (v VersionAPIs) Names() []string {
	own := v.Name
	if own == "" {
		own = Self
	}
	return append([]string{own}, object.SortedKeys(v.Others)...)
}

// check returns what is wrong with versions, with paths below definition.
func (v VersionAPIs) check() (f object.Faults) {
	f.Count("versions", len(v.Others), maxVersions)
	for _, name := range object.SortedKeys(v.Others) {
		at := object.Entry("versions", name)
		switch {
		case name == "":
			f.Add(at, "must have a name, by which calls choose it")
		case v.IsSelf(name):
			f.Add(at, "is the name of the API itself as a version (definition.name, or self)")
		}
		if wrong := checkAPIName(v.Others[name]); wrong != "" {
			f.Add(at, "must name an API: "+wrong)
		}
	}
	if v.Default != "" && !v.Has(v.Default) {
		f.Addf("default", "must be the name of a version: one of %s", strings.Join(v.Names(), ", "))
	}
	return f
}
