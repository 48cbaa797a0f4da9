package validate

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// printer writes values as messages have them, and stops when it has enough.
type printer struct {
	doc *syntax.Document
	out []byte
}

// maxPrinted bounds values that are reformatted, in bytes. Longer values are quoted
// as in the source.
const maxPrinted = 4096

// enough is from how many bytes on nothing more is written.
const enough = maxEcho + utf8.UTFMax

// print returns a value in the one way that the language's printers write it,
// not longer than messages repeat.
func (v *Validator) print(val *syntax.Value) string {
	p := printer{doc: v.doc}
	if val.Text.End-val.Text.Start > maxPrinted {
		return v.text(val.Text) // a text of a megabyte is not decoded for its first line
	}
	p.value(val)
	return clip(string(p.out), maxEcho)
}

func (p *printer) value(val *syntax.Value) {
	if len(p.out) >= enough {
		return
	}
	switch val.Kind {
	case syntax.StringValue:
		p.text(val)
	case syntax.BlockStringValue:
		p.block(p.doc.StringValue(val))
	case syntax.ListValue:
		p.out = append(p.out, '[')
		for i := val.Items.Lo; i < val.Items.Hi && len(p.out) < enough; i++ {
			p.comma(i > val.Items.Lo)
			p.value(&p.doc.Values[i])
		}
		p.out = append(p.out, ']')
	case syntax.ObjectValue:
		p.out = append(p.out, '{')
		for i := val.Items.Lo; i < val.Items.Hi && len(p.out) < enough; i++ {
			p.comma(i > val.Items.Lo)
			arg := &p.doc.Arguments[i]
			p.raw(arg.Name)
			p.out = append(p.out, ": "...)
			p.value(&p.doc.Values[arg.Value])
		}
		p.out = append(p.out, '}')
	default:
		p.raw(val.Text)
	}
}

func (p *printer) comma(wanted bool) {
	if wanted {
		p.out = append(p.out, ", "...)
	}
}

func (p *printer) raw(at syntax.Span) {
	at.End = min(at.End, at.Start+enough)
	p.out = append(p.out, p.doc.Bytes(at)...)
}

// text writes a string with its control characters escaped.
func (p *printer) text(val *syntax.Value) {
	p.out = append(p.out, '"')
	for _, r := range p.doc.StringValue(val) {
		if len(p.out) >= enough {
			break
		}
		switch {
		case r == '"' || r == '\\':
			p.out = append(p.out, '\\', byte(r))
		case strings.ContainsRune("\b\t\n\f\r", r):
			p.out = append(p.out, '\\', "btn_fr"[r-'\b'])
		case r < ' ' || r >= 0x7F && r <= 0x9F:
			p.out = fmt.Appendf(p.out, `\u%04X`, r)
		default:
			p.out = utf8.AppendRune(p.out, r)
		}
	}
	p.out = append(p.out, '"')
}

// block writes a block string, on lines of its own when that reads better.
func (p *printer) block(value string) {
	escaped := strings.ReplaceAll(value, `"""`, `\"""`)
	lines := strings.Split(escaped, "\n")
	indented := len(lines) > 1
	for _, line := range lines[1:] {
		indented = indented && (line == "" || isBlank(line[0]))
	}
	quotes := strings.HasSuffix(escaped, `\"""`)
	closing := strings.HasSuffix(value, `"`) && !quotes || strings.HasSuffix(value, `\`)
	spread := len(lines) > 1 || len(value) > 70 || closing || indented || quotes
	p.out = append(p.out, `"""`...)
	if spread && !(len(lines) == 1 && value != "" && isBlank(value[0])) || indented {
		p.out = append(p.out, '\n')
	}
	p.out = append(p.out, clip(escaped, enough)...)
	if spread || closing {
		p.out = append(p.out, '\n')
	}
	p.out = append(p.out, `"""`...)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
