package mapping

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

// A Template is a compiled text with ${! expression } parts; $${ stands for ${. Goroutines
// may share it.
type Template struct {
	static string // the text if there are no parts
	parts  []part
}

// part is an expression with the text before it. The last part may have no expression.
type part struct {
	before string
	script *Script
}

// CompileTemplate compiles a template. Its error is a *Problem.
func CompileTemplate(text string) (*Template, error) {
	t := &Template{}
	var before strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$${"):
			before.WriteString("${")
			i += len("$${")
		case strings.HasPrefix(rest, "${!"):
			end := expressionEnd(text, i+len("${!"))
			if end < 0 {
				return nil, problemAt(text, i, "the expression has no closing }")
			}
			script, err := expression(text, i+len("${!"), end)
			if err != nil {
				return nil, err
			}
			t.parts = append(t.parts, part{before.String(), script})
			before.Reset()
			i = end + 1
		case strings.HasPrefix(rest, "${"):
			return nil, problemAt(text, i, "expected ${! expression }, or $${ for the characters themselves")
		default:
			before.WriteByte(text[i])
			i++
		}
	}
	switch {
	case t.parts == nil:
		t.static = before.String()
	case before.Len() > 0:
		t.parts = append(t.parts, part{before: before.String()})
	}
	return t, nil
}

// expression compiles the expression at text[from:to].
func expression(text string, from, to int) (*Script, error) {
	trimmed := strings.TrimLeft(text[from:to], " \t\r\n")
	from = to - len(trimmed)
	trimmed = strings.TrimRight(trimmed, " \t\r\n")
	if trimmed == "" {
		return nil, problemAt(text, from, "the expression is empty")
	}
	script, err := language().script(key{trimmed, true})
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return script, err
	}
	line, column := place(text, from)
	moved := *p // its text may be shared
	switch {
	case p.Line <= 1:
		moved.Line, moved.Column = line, column+max(p.Column, 1)-1
	default:
		moved.Line = line + p.Line - 1
	}
	return nil, &moved
}

// Static returns the text of a template without expressions.
func (t *Template) Static() (text string, ok bool) { return t.static, t.parts == nil }

// Text returns the text for a message. doc is called only if the template has expressions.
func (t *Template) Text(doc func() *Doc) (string, error) {
	if t.parts == nil {
		return t.static, nil
	}
	d := doc()
	var text strings.Builder
	for i := range t.parts {
		text.WriteString(t.parts[i].before)
		if t.parts[i].script == nil {
			continue
		}
		value, err := t.parts[i].script.text(d)
		if err != nil {
			return "", err
		}
		text.WriteString(value)
	}
	return text.String(), nil
}

// text returns the value of an expression as a text.
func (s *Script) text(d *Doc) (string, error) {
	value, err := s.run(d.Empty().message, d)
	switch {
	case err != nil:
		return "", fmt.Errorf("expression %s: %w", oneLine(s.name.text), err)
	case value == nil:
		return "", fmt.Errorf("expression %s deletes the message", oneLine(s.name.text))
	case !value.HasBytes() && value.HasStructured():
		structured, err := value.AsStructured()
		return bloblang.ValueToString(structured), err
	}
	body, err := value.AsBytes()
	return string(body), err
}

// expressionEnd returns where the bracket is closed in which text[from:] is, or -1.
func expressionEnd(text string, from int) int {
	depth := 0
	for i := from; i < len(text); {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']':
			depth--
		case '}':
			if depth <= 0 {
				return i
			}
			depth--
		}
		i = lexeme(text, i)
	}
	return -1
}

// lexeme returns the end of the string, comment or single byte that begins at text[i].
func lexeme(text string, i int) int {
	rest := text[i:]
	switch {
	case strings.HasPrefix(rest, `"""`):
		if end := strings.Index(rest[3:], `"""`); end >= 0 {
			return i + 3 + end + 3
		}
		return len(text)
	case rest[0] == '"':
		for j := 1; j < len(rest); j++ {
			switch rest[j] {
			case '\\':
				j++
			case '"':
				return i + j + 1
			}
		}
		return len(text)
	case rest[0] == '#':
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return i + end
		}
		return len(text)
	}
	return i + 1
}

// place returns the line and the column of text[i]. A column is a character.
func place(text string, i int) (line, column int) {
	before := text[:i]
	begin := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[begin:])
}

func problemAt(text string, i int, message string) *Problem {
	line, column := place(text, i)
	return &Problem{Line: line, Column: column, Message: message}
}
