// Package declarative reads files that describe the wanted objects of a gateway, and
// plans the changes to get there.
package declarative

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Kind is the kind of an object.
type Kind string

// The kinds of objects, in the order of creation.
const (
	API    Kind = "API"
	Policy Kind = "Policy"
	Key    Kind = "Key"
)

// kinds is the order of a Set.
var kinds = []Kind{API, Policy, Key}

// labelsMember is the member of a stored object with its labels.
const labelsMember = "x-labels"

// An Object is one API, policy or key.
type Object struct {
	Kind     Kind
	Name     string            // id of an API or a policy; display name of a key
	Labels   map[string]string // nil for keys
	Hash     string            // of a key; "" for one to be generated
	Generate bool              // generate a key if none has its name
	Body     json.RawMessage   // definition, policy or session; API and policy have their id
	Where    string            // file of the object; "" for one of a server
}

// place names an object in messages.
func (o *Object) place() string {
	if o.Where != "" {
		return fmt.Sprintf("%s: %s %s", o.Where, o.Kind, o.Name)
	}
	return fmt.Sprintf("%s %s", o.Kind, o.Name)
}

// identity is unique among objects.
func (o *Object) identity() string {
	if o.Hash != "" {
		return string(o.Kind) + " " + o.Hash
	}
	return string(o.Kind) + " " + o.Name
}

// A Set is objects, each once: APIs, then policies, then keys, by name.
type Set struct{ Objects []*Object }

// A Wrong lists all problems of files, each with its place.
type Wrong []string

// Error joins the problems, one a line.
func (w Wrong) Error() string {
	var text strings.Builder
	for i, one := range w {
		if i > 0 {
			text.WriteString("\n")
		}
		text.WriteString(one)
	}
	return text.String()
}

// Count returns the number of objects of a kind.
func (s *Set) Count(kind Kind) (n int) {
	for _, o := range s.Objects {
		if o.Kind == kind {
			n++
		}
	}
	return n
}

// Add adds objects, and returns a problem for each duplicate.
func (s *Set) Add(objects ...*Object) error {
	var wrong Wrong
	seen := make(map[string]*Object, len(s.Objects)+len(objects))
	for _, o := range s.Objects {
		seen[o.identity()] = o
	}
	for _, o := range objects {
		if first, ok := seen[o.identity()]; ok {
			wrong = append(wrong, fmt.Sprintf("%s: is there already, in %s", o.place(), first.Where))
			continue
		}
		seen[o.identity()] = o
		s.Objects = append(s.Objects, o)
	}
	slices.SortFunc(s.Objects, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hash, b.Hash))
	})
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}
