package sdl

import (
	"fmt"
	"strings"
)

func (p *printer) description(indent, text string) { WriteDescription(&p.b, indent, text) }

// WriteDescription writes a description before what it describes: as a block where
// that says exactly the same text. An empty one is left out.
func WriteDescription(b *strings.Builder, indent, text string) {
	switch {
	case text == "":
	case !blockable(text):
		b.WriteString(indent + Quote(text) + "\n")
	default:
		b.WriteString(indent + "\"\"\"\n")
		for line := range strings.SplitSeq(strings.ReplaceAll(text, `"""`, `\"""`), "\n") {
			if line != "" {
				line = indent + line
			}
			b.WriteString(line + "\n")
		}
		b.WriteString(indent + "\"\"\"\n")
	}
}

// blockable reports whether a text comes out of a block string as it went in: a
// block loses blank lines at its ends and the indentation that all lines share,
// and has no way to write a carriage return.
func blockable(text string) bool {
	for _, r := range text {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f {
			return false
		}
	}
	lines := strings.Split(text, "\n")
	if blank(lines[0]) || blank(lines[len(lines)-1]) {
		return false
	}
	for _, line := range lines {
		if !blank(line) && line[0] != ' ' && line[0] != '\t' {
			return true
		}
	}
	return false
}

func blank(line string) bool { return strings.Trim(line, " \t") == "" }

// Quote returns a text as a string of the language.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
