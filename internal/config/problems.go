package config

import (
	"fmt"
	"strings"
)

// Kind is the kind of place that a value comes from.
type Kind uint8

// The kinds of places, weakest first.
const (
	FromDefault Kind = iota
	FromFile
	FromEnv
	FromFlag
)

// An Origin is the place that a value comes from. The zero Origin is the default.
type Origin struct {
	Kind Kind
	Name string // of the file, the variable or the flag; "" for the default
	Line int    // in the file, from 1; 0 for the file as a whole
	Col  int    // in characters, from 1
}

// String writes the place as file:line, env NAME, flag --name or default.
func (o Origin) String() string {
	switch o.Kind {
	case FromFile:
		return fmt.Sprintf("%s:%d", o.Name, o.Line)
	case FromEnv:
		return "env " + o.Name
	case FromFlag:
		return "flag " + o.Name
	default:
		return "default"
	}
}

// Origins holds the origin of every setting that is not at its default, by key.
type Origins map[string]Origin

// A Problem is one thing wrong with the configuration.
type Problem struct {
	Origin  Origin
	Key     string // such as gateway.listen; "" if no single key is the problem
	Message string
	Excerpt string // the line of the file and a caret, with secrets cut out; "" when not from a file
}

// String returns the problem with its place first, without a newline at the end.
func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.Origin.Kind == FromFile && p.Origin.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.Origin.Name, p.Origin.Line, p.Origin.Col)
	case p.Origin.Kind == FromFile:
		fmt.Fprintf(&b, "%s: ", p.Origin.Name)
	case p.Origin.Kind != FromDefault:
		fmt.Fprintf(&b, "%s: ", p.Origin)
	}
	if p.Key != "" {
		fmt.Fprintf(&b, "%s: ", p.Key)
	}
	b.WriteString(p.Message)
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	return b.String()
}

// Problems is the error of an invalid configuration, with all its problems.
type Problems struct {
	List []Problem // at least one, files first, in the order they were read
	More int       // how many there are beyond List
}

// Error lists all problems, one per line.
func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List)+1)
	if n := len(p.List) + p.More; n == 1 {
		lines = append(lines, "configuration: 1 problem")
	} else {
		lines = append(lines, fmt.Sprintf("configuration: %d problems", n))
	}
	for _, problem := range p.List {
		lines = append(lines, problem.String())
	}
	if p.More > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", p.More))
	}
	return strings.Join(lines, "\n")
}

// ExitCode is 2: a configuration is part of how the program was called.
func (p *Problems) ExitCode() int { return 2 }
