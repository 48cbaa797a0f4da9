package datagraph

import (
	"fmt"
	"strings"
)

// A Root is what a variable of a template begins with.
type Root uint8

// The roots of variables.
const (
	Text      Root = iota // no variable: text that stands for itself
	Arguments             // {{.arguments.a.b}}: a value of the field's arguments
	Object                // {{.object.a.b}}: a field of the object that the field belongs to
	Header                // {{.request.headers.Name}}: a header of the client
)

// A Piece is a part of a template.
type Piece struct {
	Root Root
	Text string   // of Text, and the name of Header
	Path []string // of Arguments and Object
}

// A Template is a text with variables.
type Template []Piece

// Only reports whether the template is one variable and nothing else.
func (t Template) Only() bool { return len(t) == 1 && t[0].Root != Text }

// parseTemplate reads a text. Double braces that are no variable are an error: nothing else
// is evaluated in them.
func parseTemplate(text string) (Template, error) {
	var t Template
	for text != "" {
		before, rest, found := strings.Cut(text, "{{")
		if before != "" {
			t = append(t, Piece{Text: before})
		}
		if !found {
			break
		}
		inner, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, fmt.Errorf("has a variable without an end: {{%s", rest)
		}
		one, err := variable(strings.TrimSpace(inner))
		if err != nil {
			return nil, err
		}
		t, text = append(t, one), after
	}
	return t, nil
}

func variable(inner string) (Piece, error) {
	parts := strings.Split(strings.TrimPrefix(inner, "."), ".")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, " \t\"'|(){}") || !strings.HasPrefix(inner, ".") {
			return Piece{}, fmt.Errorf("has {{%s}}; variables are {{.arguments.name}}, {{.object.name}} and {{.request.headers.Name}}", inner)
		}
	}
	switch {
	case parts[0] == "arguments" && len(parts) > 1:
		return Piece{Root: Arguments, Path: parts[1:]}, nil
	case parts[0] == "object" && len(parts) > 1:
		return Piece{Root: Object, Path: parts[1:]}, nil
	case len(parts) == 3 && parts[0] == "request" && parts[1] == "headers":
		return Piece{Root: Header, Text: parts[2]}, nil
	}
	return Piece{}, fmt.Errorf("has {{%s}}; variables are {{.arguments.name}}, {{.object.name}} and {{.request.headers.Name}}", inner)
}
