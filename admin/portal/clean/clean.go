// Package clean makes documents of other people safe to publish: nothing in them runs
// in a browser, and they do not contain the addresses of upstreams.
package clean

import (
	"fmt"
	"strings"
)

// Edition numbers the rules of this package: it is incremented when they change the
// result for a document.
const Edition = 2

// Kind is the format of a document.
type Kind string

// The kinds.
const (
	OpenAPI  Kind = "openapi"  // version 2 or 3, in JSON or YAML
	GraphQL  Kind = "graphql"  // the schema definition language
	Markdown Kind = "markdown" // CommonMark with tables and strikethrough
)

// MaxBytes is the largest document, in bytes.
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

// Clean returns the safe form of a document: JSON for OpenAPI descriptions, HTML for
// Markdown, and the printed schema for GraphQL. It is at most four times as large as
// the source plus 64 KiB. The error is a *Problem.
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

// inert returns text without tags, in case it is displayed as HTML. Readers see almost
// the same text.
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

// opensTag reports whether "<" followed by c begins a tag in HTML.
func opensTag(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '/' || c == '!' || c == '?'
}

// Gateway replaces the address of an upstream in texts.
const Gateway = "{gateway}"

// HideOrigin replaces all occurrences of an origin such as http://10.0.0.1:8080 in a
// text, in any case and with any scheme or none. Longer names that begin or end with
// it are kept, and so is a host without a port and a scheme, which could be a word.
func HideOrigin(text, origin string) string {
	_, host, found := strings.Cut(lower(origin), "://")
	if !found || host == "" {
		return text
	}
	plain := lower(text)
	var b strings.Builder
	done := 0
	for at := strings.Index(plain, host); at >= 0; {
		end := at + len(host)
		if begin := beginning(plain[done:at], host); begin >= 0 && !longer(plain[end:]) {
			b.WriteString(text[done : done+begin])
			b.WriteString(Gateway)
			done = end
		}
		next := strings.Index(plain[end:], host)
		if next < 0 {
			break
		}
		at = end + next
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// beginning returns where the origin begins in before, the text in front of its host,
// or -1 if the host is not that of an origin.
func beginning(before, host string) int {
	if left, found := strings.CutSuffix(before, "//"); found {
		scheme, found := strings.CutSuffix(left, ":")
		if !found {
			return len(left)
		}
		begin := len(scheme)
		for begin > 0 && (isAlnum(scheme[begin-1]) || strings.IndexByte("+-.", scheme[begin-1]) >= 0) {
			begin--
		}
		return begin
	}
	if !strings.Contains(host, ":") || before != "" && partOfName(before[len(before)-1]) {
		return -1
	}
	return len(before)
}

// partOfName reports whether a host that follows c is part of a longer name.
func partOfName(c byte) bool { return isAlnum(c) || strings.IndexByte("-_.@", c) >= 0 }

// lower returns text with ASCII letters in lower case; its length is the same.
func lower(text string) string {
	small := []byte(text)
	for i, c := range small {
		if c >= 'A' && c <= 'Z' {
			small[i] = c + 'a' - 'A'
		}
	}
	return string(small)
}

// longer reports whether a host name continues in rest. A dot that nothing follows
// ends a sentence.
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
