package definition

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

const maxPersisted = 10_000 // operations of one version

// PersistedOperation makes a GraphQL operation of calls of a path.
type PersistedOperation struct {
	// Method of the calls: GET, POST, PUT, PATCH or DELETE.
	// Example: "GET"
	Method string `json:"method" oneof:"GET POST PUT PATCH DELETE"`
	// Path below the listen path; "{name}" matches one segment.
	// Example: "/countries/{code}"
	Path string `json:"path"`
	// GraphQL operation that goes to the upstream.
	// Example: "query ($code: ID!) { country(code: $code) { name } }"
	Operation string `json:"operation"`
	// Variables as JSON; strings may hold $path.name, $svc_context and $svc_meta variables.
	// Example: {"code": "$path.code"}
	Variables map[string]json.RawMessage `json:"variables,omitempty"`
	// Whether the entry is off.
	Disabled bool    `json:"disabled,omitempty"`
	Unknown  Unknown `json:"-"`
}

// PersistedOperations returns the operations of a version, which may be nil, that
// are on.
func (v *Version) PersistedOperations() (on []PersistedOperation) {
	for _, o := range v.Extended().PersistedOperations {
		if !o.Disabled {
			on = append(on, o)
		}
	}
	return on
}

// checkPersistedOperations checks the operations of a version. at is the path of
// extended_paths.
func (p *Problems) checkPersistedOperations(at string, e *ExtendedPaths) {
	at = object.Member(at, "persist_graphql")
	p.checkCount(at, len(e.PersistedOperations), maxPersisted)
	seen := make(map[string]bool)
	for i := range e.PersistedOperations {
		if o := &e.PersistedOperations[i]; !o.Disabled {
			p.checkPersisted(object.Item(at, i), o, seen)
		}
	}
}

// Unversioned returns the version that an API uses for all calls, or nil when
// its calls choose or there is none.
func (a *API) Unversioned() *Version {
	if a.VersionData == nil || a.Versioned() {
		return nil
	}
	if v := a.VersionData.Versions["Default"]; v != nil {
		return v
	}
	for _, v := range a.VersionData.Versions {
		if len(a.VersionData.Versions) == 1 {
			return v
		}
	}
	return nil
}

// checkPersisted checks one operation. seen holds the calls that others take.
func (p *Problems) checkPersisted(at string, o *PersistedOperation, seen map[string]bool) {
	switch o.Method {
	case "GET", "POST", "PUT", "PATCH", "DELETE":
	default:
		p.addf(at+".method", "must be GET, POST, PUT, PATCH or DELETE")
	}
	if strings.TrimSpace(o.Operation) == "" {
		p.addf(at+".operation", "is required: the GraphQL operation that the path stands for")
	}
	parameters, shape := p.checkPersistedPath(at+".path", o.Path)
	if call := o.Method + " " + shape; shape != "" {
		if seen[call] {
			p.addf(at+".path", "takes the same calls as an operation before it")
		}
		seen[call] = true
	}
	for _, name := range object.SortedKeys(o.Variables) {
		p.checkReferences(object.Entry(at+".variables", name), o.Variables[name], parameters)
	}
}

// checkPersistedPath returns the path's parameters, and what paths that match
// the same calls have in common, "" when the path is wrong.
func (p *Problems) checkPersistedPath(at, path string) (parameters map[string]bool, shape string) {
	before := len(*p)
	parameters = make(map[string]bool)
	switch {
	case !strings.HasPrefix(path, "/"):
		p.addf(at, `must begin with "/", as in /countries/{code}`)
		return nil, ""
	case len(path) > maxListen:
		p.addf(at, "has %d bytes; at most %d are allowed", len(path), maxListen)
		return nil, ""
	}
	pieces := strings.Split(strings.TrimSuffix(path[1:], "/"), "/")
	for i, piece := range pieces {
		if path != "/" {
			pieces[i] = p.checkPiece(at, piece, parameters)
		}
	}
	p.checkCount(at, len(pieces), maxSegments)
	if len(*p) > before {
		return parameters, ""
	}
	return parameters, "/" + strings.Join(pieces, "/")
}

// checkPiece checks one segment and returns it as it is compared: decoded, and
// "{}" for a parameter.
func (p *Problems) checkPiece(at, piece string, parameters map[string]bool) string {
	if !strings.HasPrefix(piece, "{") || !strings.HasSuffix(piece, "}") {
		p.checkSegment(at, piece, parameters)
		decoded, _ := decodeSegment(piece)
		return decoded
	}
	name := strings.Trim(piece, "{}")
	switch {
	case !isName(name) || piece != "{"+name+"}":
		p.addf(at, "parameter %s: its name must consist of letters, digits, _ and -, beginning with a letter or _", piece)
	case parameters[name]:
		p.addf(at, "parameter %s stands twice", piece)
	}
	parameters[name] = true
	return "{}"
}

// pathReference is a parameter of the path in a variable.
var pathReference = regexp.MustCompile(`\$path\.([A-Za-z0-9_-]*)`)

// checkReferences finds what a variable takes from the path, and whether it is
// there.
func (p *Problems) checkReferences(at string, value json.RawMessage, parameters map[string]bool) {
	switch value[0] {
	case '"':
		for _, found := range pathReference.FindAllStringSubmatch(object.Unquote(value), -1) {
			if !parameters[found[1]] {
				p.addf(at, "refers to $path.%s, and the path has no parameter {%s}", found[1], found[1])
			}
		}
	case '[':
		for i, one := range elements(value) {
			p.checkReferences(object.Item(at, i), one, parameters)
		}
	case '{':
		members := parts(value)
		for _, name := range object.SortedKeys(members) {
			p.checkReferences(object.Member(at, name), members[name], parameters)
		}
	}
}
