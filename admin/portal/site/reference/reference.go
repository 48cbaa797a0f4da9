// Package reference turns the documents of APIs into what pages show: operations with
// their parameters, bodies and answers, and types with their fields. The documents are
// cleaned already; nothing is fetched.
package reference

import (
	"strings"
)

// A Reference is what a document says of an API.
type Reference struct {
	Title, Version string
	HTML           string // description, sanitised; "" for none
	Server         string // path or address that operations are below, of OpenAPI
	Groups         []*Group
	Types          []*Group // of types
	byID           map[string]*Entry
}

// A Group is entries under one heading.
type Group struct {
	Name, HTML string
	Entries    []*Entry
}

// An Entry is an operation or a type, with a page of its own.
type Entry struct {
	ID         string // unique in the reference, for addresses
	Method     string // GET, query, or what kind of type it is
	Name       string // path of an operation, or name
	Title      string // summary; "" for none
	HTML       string // description, sanitised
	Text       string // description as plain text, of GraphQL
	Deprecated bool
	Why        string // it is deprecated

	Parameters []*Node
	Body       *Body
	Responses  []*Response
	Security   []string

	Shape   *Node   // of a type
	Returns *Type   // of a GraphQL field
	Fields  []*Node // of a GraphQL type
	Values  []*Node // of an enum
	Members []Type  // of a union, interfaces of an object, or objects of an interface
	Query   string  // an operation to try, of a GraphQL field
}

// A Body is what is sent or answered, in each of its formats.
type Body struct {
	HTML     string
	Required bool
	Formats  []*Format
}

// A Format is one media type of a body.
type Format struct {
	Media   string
	Shape   *Node
	Example string // JSON; "" for none
}

// A Response is one answer of an operation.
type Response struct {
	Status  string
	HTML    string
	Formats []*Format
	Headers []*Node
}

// A Type is the name of a type, with the page that describes it.
type Type struct {
	Text   string // as written, such as [User!]!
	Before string // the part in front of the name
	Name   string
	After  string
	ID     string // of the entry; "" for a type that is built in
}

// A Node is a parameter, a member of an object or a schema: its type, and what is in it.
type Node struct {
	Name, In   string
	Type       Type
	Required   bool
	Deprecated bool
	Why        string
	HTML, Text string
	Facts      []string // bounds, default, format
	Enum       []string
	Example    string
	Children   []*Node
	Variants   string // "one of", "any of" or "all of" the children
	Arguments  []*Node
	Cut        bool // more is on the page of the type
}

// Entry returns an operation or type by its id, or nil.
func (r *Reference) Entry(id string) *Entry { return r.byID[id] }

// add puts an entry into the index. A second one of the same id gets a number.
func (r *Reference) add(e *Entry) *Entry {
	base := e.ID
	for n := 2; r.byID[e.ID] != nil; n++ {
		e.ID = base + "-" + itoa(n)
	}
	r.byID[e.ID] = e
	return e
}

// Slug returns a text with letters, digits, dots, dashes and underscores alone, for
// addresses.
func Slug(text string) string {
	var b strings.Builder
	dash := false
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.':
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteRune(c)
			dash = false
		default:
			dash = true
		}
		if b.Len() > 120 {
			break
		}
	}
	if b.Len() == 0 {
		return "x"
	}
	return b.String()
}
