package webhook

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// functions stand in for those of text/template that write texts: none gets
// longer than a message, however many are put together.
var functions = template.FuncMap{
	"print":    func(args ...any) (string, error) { return short(fmt.Sprint(args...)) },
	"println":  func(args ...any) (string, error) { return short(fmt.Sprintln(args...)) },
	"printf":   printf,
	"html":     func(args ...any) (string, error) { return short(template.HTMLEscaper(args...)) },
	"js":       func(args ...any) (string, error) { return short(template.JSEscaper(args...)) },
	"urlquery": func(args ...any) (string, error) { return short(template.URLQueryEscaper(args...)) },
}

var errLong = errors.New("the message is longer than 64 KiB")

func short(text string) (string, error) {
	if len(text) > maxBody {
		return "", errLong
	}
	return text, nil
}

// printf is fmt.Sprintf without widths and precisions of more than two digits,
// each of which could ask for a megabyte.
func printf(format string, args ...any) (string, error) {
	for rest := format; ; {
		_, verb, found := strings.Cut(rest, "%")
		if !found {
			return short(fmt.Sprintf(format, args...))
		}
		numbers := verb[:len(verb)-len(strings.TrimLeft(verb, "+-# 0123456789.[]*"))]
		if strings.Contains(numbers, "*") || longest(numbers) > 2 {
			return "", errors.New("printf: a width or precision has more than two digits")
		}
		rest = strings.TrimPrefix(verb[len(numbers):], "%")
	}
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// longest returns how many digits the longest number of a text has.
func longest(text string) int {
	most := 0
	for _, number := range strings.FieldsFunc(text, func(r rune) bool { return !isDigit(r) }) {
		most = max(most, len(number))
	}
	return most
}

// maxCommands is how many commands a template may have.
const maxCommands = 500

// A judge refuses templates that could run for long: no template calls another,
// and nothing is gone through but .Meta, once at a time.
type judge struct {
	commands int
	looping  bool
}

func (j *judge) list(l *parse.ListNode) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		if err := j.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (j *judge) node(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ActionNode:
		return j.pipe(n.Pipe)
	case *parse.IfNode:
		return j.branch(&n.BranchNode)
	case *parse.WithNode:
		return j.branch(&n.BranchNode)
	case *parse.RangeNode:
		if j.looping || !isMeta(n.Pipe) {
			return errors.New("range must be over .Meta, and not within another range")
		}
		j.looping = true
		defer func() { j.looping = false }()
		return j.branch(&n.BranchNode)
	case *parse.TemplateNode:
		return errors.New("a template may not use other templates")
	}
	return nil
}

func (j *judge) branch(b *parse.BranchNode) error {
	return errors.Join(j.pipe(b.Pipe), j.list(b.List), j.list(b.ElseList))
}

// pipe counts commands, also those in parentheses.
func (j *judge) pipe(p *parse.PipeNode) error {
	for _, c := range p.Cmds {
		if j.commands++; j.commands > maxCommands {
			return fmt.Errorf("it has more than %d commands", maxCommands)
		}
		for _, arg := range c.Args {
			if err := j.argument(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *judge) argument(n parse.Node) error {
	switch n := n.(type) {
	case *parse.PipeNode:
		return j.pipe(n)
	case *parse.ChainNode:
		return j.argument(n.Node)
	}
	return nil
}

// isMeta reports whether a pipeline is .Meta and nothing else.
func isMeta(p *parse.PipeNode) bool {
	if len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	name := p.Cmds[0].Args[0].String()
	return name == ".Meta" || name == "$.Meta"
}
