package reference

import (
	"reflect"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

// A Kind is a kind of objects, with its members.
type Kind struct {
	Name    string // such as api
	Title   string // in sentences
	Members []Member

	comments *Comments
	of       reflect.Type
}

// Definitions is the declaration of API definitions, policies and keys.
func Definitions() Source {
	return Source{Package: reflect.TypeFor[definition.API]().PkgPath(), Files: definition.Source()}
}

// Kinds returns API definitions, policies and keys.
func Kinds() ([]Kind, error) {
	c, err := ReadComments(Definitions())
	if err != nil {
		return nil, err
	}
	return []Kind{
		c.Kind("api", "API definition", reflect.TypeFor[definition.API]()),
		c.Kind("policy", "Policy", reflect.TypeFor[definition.Policy]()),
		c.Kind("key", "Key", reflect.TypeFor[definition.Session]()),
	}, nil
}

// Kind returns the kind of objects that a type is for.
func (c *Comments) Kind(name, title string, of reflect.Type) Kind {
	return Kind{Name: name, Title: title, Members: c.All(of), comments: c, of: of}
}

// Find returns the members with a path, of which the parts [] and {} may be left out, and
// those below it.
func (k *Kind) Find(path string) []Member {
	at := slices.IndexFunc(k.Members, func(m Member) bool { return plain(m.Path) == plain(path) })
	if at < 0 {
		return nil
	}
	end := at + 1
	for end < len(k.Members) && isBelow(k.Members[end].Path, k.Members[at].Path) {
		end++
	}
	return k.Members[at:end]
}
