// Package clean makes documents that people sent safe to show to others: nothing
// in them runs in a browser, and nothing tells where upstreams are.
package clean

import (
	"fmt"
	"strings"
)

// Edition numbers the rules of this package: it grows when a document comes out
// otherwise than before.
const Edition = 1

// Kind says what a document is written in.
type Kind string

// The kinds.
const (
	OpenAPI  Kind = "openapi"  // version 2 or 3, in JSON or YAML
	GraphQL  Kind = "graphql"  // the schema definition language
	Markdown Kind = "markdown" // CommonMark with tables and strikethrough
)

// MaxBytes bounds a document.
const MaxBytes = 2 << 20

// A Problem is why a document is refused.
type Problem struct {
	Path    string // where in it, such as paths["/a"].get; "" for the whole
	Message string // what is wrong and what would be right
}

// Error is the problem behind its place.
func (p *Problem) Error() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

func problemf(path, format string, args ...any) error {
	return &Problem{Path: path, Message: fmt.Sprintf(format, args...)}
}

// Clean returns what of a document can be shown: JSON of OpenAPI descriptions,
// HTML of Markdown, and of GraphQL the schema printed anew. It is no larger than
// four times the source and 64 KiB. The error is a *Problem.
func Clean(kind Kind, source string) (string, error) {
	if len(source) > MaxBytes {
		return "", problemf("", "is %d bytes; at most %d are read", len(source), MaxBytes)
	}
	source = strings.TrimPrefix(source, "\ufeff")
	if strings.TrimSpace(source) == "" {
		return "", problemf("", "is empty")
	}
	var text string
	var err error
	switch kind {
	case OpenAPI:
		text, err = openAPI(source)
	case GraphQL:
		text, err = graphQL(source)
	case Markdown:
		text, err = markdown(source)
	default:
		return "", problemf("", "is of the kind %q, of which nothing is known", string(kind))
	}
	if err == nil && len(text) > 4*len(source)+64<<10 {
		return "", problemf("", "comes to %d bytes when it is written out, more than four times what was sent", len(text))
	}
	return text, err
}

// inert returns text in which no tag begins, should somebody take it for HTML. Who
// reads it sees hardly a difference.
func inert(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if text[i] == '<' && i+1 < len(text) && opensTag(text[i+1]) {
			b.WriteString("‹")
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// opensTag tells whether c after "<" makes it more than that character.
func opensTag(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '/' || c == '!' || c == '?'
}

// Gateway stands in texts where the address of an upstream stood.
const Gateway = "{gateway}"

// HideOrigin replaces an origin such as http://10.0.0.1:8080 wherever it stands in
// a text. Longer ones that begin alike stay.
func HideOrigin(text, origin string) string {
	if origin == "" || !strings.Contains(text, origin) {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, origin)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if longer(rest) {
			b.WriteString(origin)
		} else {
			b.WriteString(Gateway)
		}
		text = rest
	}
}

// longer tells whether the name of a host goes on with a text. A dot ends a
// sentence unless something follows.
func longer(rest string) bool {
	if rest == "" {
		return false
	}
	c := rest[0]
	if c == '.' || c == ':' {
		return len(rest) > 1 && isAlnum(rest[1])
	}
	return isAlnum(c) || c == '-' || c == '_'
}

func isAlnum(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }
