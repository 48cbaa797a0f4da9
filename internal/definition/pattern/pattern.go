// Package pattern reads the patterns of paths that definitions are written with.
// It says what a pattern is made of; gateways match paths against it.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxLength is the longest pattern, in bytes. It bounds what compiling one takes:
// a few bytes of an expression may ask for a thousand repetitions.
const MaxLength = 4096

// What placeholders without an expression of their own stand for.
const (
	OneSegment = "[^/]+"
	AllTheRest = ".*"
)

// A Part is a piece of a pattern: fixed text, or an expression for what a
// placeholder stands for. One of the two is empty.
type Part struct{ Text, Expr string }

// Parse cuts a pattern at its placeholders: {name} stands for one segment,
// {name:regex} for text that the expression matches, and a * after a slash for
// all the rest. expression reports whether the pattern holds an operator of regular
// expressions (one of ^ | ( ) [ ] + ? \, a * elsewhere, braces with numbers, or a
// $ at the end), so that all of it is an expression; a dot alone makes none.
// There is at least one part, unless there is an error.
func Parse(text string) (parts []Part, expression bool, err error) {
	if text == "" {
		return nil, false, errors.New(`is empty; "/" matches every path`)
	}
	if len(text) > MaxLength {
		return nil, false, fmt.Errorf("is %d bytes long; at most %d are allowed", len(text), MaxLength)
	}
	if !utf8.ValidString(text) {
		return nil, false, errors.New("is not UTF-8")
	}
	if parts, err = cut(text); err != nil {
		return nil, false, err
	}
	return parts, isExpression(parts), nil
}

// Check returns why text is not a pattern, or nil.
func Check(text string) error {
	parts, expression, err := Parse(text)
	if err != nil {
		return err
	}
	for i, p := range parts {
		if !expression && p.Expr != "" && p.Expr != OneSegment && p.Expr != AllTheRest {
			parts[i].Text, expression = regexp.QuoteMeta(p.Text), true // each may be right, and all together too large
		}
	}
	if expression {
		_, err = regexp.Compile(Join(parts))
	}
	return err
}

// Join writes the parts of an expression as the expression that they are.
func Join(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text + p.Expr)
	}
	return b.String()
}

func cut(text string) ([]Part, error) {
	var parts []Part
	start := 0
	place := func(from, to int, expr string) {
		if from > start {
			parts = append(parts, Part{Text: text[start:from]})
		}
		parts = append(parts, Part{Expr: expr})
		start = to
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++ // what follows stands for itself
		case text[i] == '*' && i > 0 && text[i-1] == '/':
			place(i, i+1, AllTheRest)
		case text[i] == '{':
			length := closing(text[i:])
			if length < 0 {
				return nil, fmt.Errorf("has an opening brace at byte %d without a closing one", i)
			}
			expr, err := placeholder(text[i+1 : i+length])
			if err != nil {
				return nil, err
			}
			if expr != "" {
				place(i, i+length+1, expr)
			}
			i += length
		}
	}
	if start < len(text) {
		parts = append(parts, Part{Text: text[start:]})
	}
	return parts, nil
}

// closing returns where the brace that text begins with closes, or -1.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// placeholder reads what stands between braces, and returns "" for what is no
// placeholder: numbers repeat what stands before them in an expression.
func placeholder(inner string) (expr string, err error) {
	name, expr, restricted := strings.Cut(inner, ":")
	if !isName(name) {
		return "", nil
	}
	if !restricted {
		return OneSegment, nil
	}
	if _, err := regexp.Compile(expr); err != nil {
		return "", fmt.Errorf("{%s}: %w", name, err)
	}
	return "(?:" + expr + ")", nil
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

func isExpression(parts []Part) bool {
	for _, p := range parts {
		if strings.ContainsAny(p.Text, `^|()[]+?\*{}`) {
			return true
		}
	}
	return strings.HasSuffix(parts[len(parts)-1].Text, "$")
}
