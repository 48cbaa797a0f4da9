package datagraph

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A Body is the template of a JSON body: variables outside strings stand for JSON values,
// those within for their text. It is empty for a source without a body.
type Body []BodyPiece

// A BodyPiece is a part of a Body.
type BodyPiece struct {
	Piece
	Quoted bool // the variable is within a string
}

// body reads the template of a body.
func (c *compiler) body(at, text string, s *Source) Body {
	t := c.template(at, text, s)
	var b Body
	var sample bytes.Buffer // the body with values that no text beside them makes another one, or part of an escape
	quoted := false
	for _, one := range t {
		b = append(b, BodyPiece{one, quoted})
		if one.Root != Text {
			sample.WriteString(map[bool]string{true: " ", false: "null"}[quoted])
			continue
		}
		sample.WriteString(one.Text)
		quoted = endsQuoted(one.Text, quoted)
	}
	if t != nil && !json.Valid(sample.Bytes()) {
		c.add(at, `must be JSON, such as {"name": {{.arguments.name}}}: a variable stands for a whole value, or for text within a string`)
	}
	return b
}

// onlyVariable matches a JSON string that is one variable.
var onlyVariable = regexp.MustCompile(`"(\{\{[^"\\{}]*\}\})"`)

// operation has a GraphQL source sent an operation of its own.
func (c *compiler) operation(at string, s *Source) {
	conf := *s.Config
	conf.Method = http.MethodPost
	s.Config, s.URL = &conf, Template{{Text: conf.URL}}
	var doc syntax.Document
	switch err := syntax.Parse(&doc, []byte(conf.Operation), syntax.Limits{}); {
	case err != nil:
		c.add(at+".operation", "must be an operation of GraphQL: "+err.Error())
		return
	case len(doc.Operations) != 1:
		c.add(at+".operation", "must be one operation of GraphQL, with the fragments that it uses")
		return
	case doc.Operations[0].Kind == syntax.Subscription:
		c.add(at+".operation", "must be a query or a mutation")
		return
	}
	query, _ := json.Marshal(conf.Operation)
	piece := func(text string) BodyPiece { return BodyPiece{Piece: Piece{Text: text}} }
	s.Body = Body{piece(`{"query":` + string(query))}
	if len(conf.Variables) > 0 {
		s.Body = append(s.Body, piece(`,"variables":`))
		s.Body = append(s.Body, c.body(at+".variables", onlyVariable.ReplaceAllString(string(conf.Variables), "$1"), s)...)
	}
	s.Body = append(s.Body, piece("}"))
}

// endsQuoted reports whether a JSON string is open at the end of a text.
func endsQuoted(text string, quoted bool) bool {
	for text != "" {
		i := strings.IndexAny(text, `"\`)
		if i < 0 {
			return quoted
		}
		if text[i] == '\\' {
			text = text[min(i+2, len(text)):]
			continue
		}
		quoted, text = !quoted, text[i+1:]
	}
	return quoted
}
