package shell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// YAML converts JSON to YAML, members in their order. Scalars are written as in JSON,
// which is valid YAML, and texts of several lines as block scalars where possible.
func YAML(data []byte) (string, error) {
	w := yamlWriter{dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	if err := w.value("", false); err != nil {
		return "", err
	}
	return strings.TrimPrefix(w.text.String(), "\n"), nil
}

type yamlWriter struct {
	dec  *json.Decoder
	text strings.Builder
}

// value writes the next value. inline means after a dash, where the first member goes on
// the same line.
func (w *yamlWriter) value(indent string, inline bool) error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return w.members(indent, inline)
	case json.Delim('['):
		return w.items(indent)
	}
	if !inline {
		w.text.WriteString(" ")
	}
	return w.scalar(token, indent)
}

func (w *yamlWriter) scalar(token json.Token, indent string) error {
	if text, ok := token.(string); ok && isBlock(text) {
		// The minus removes the line end at the end.
		mark, lines := "|-", text
		if cut, ends := strings.CutSuffix(text, "\n"); ends {
			mark, lines = "|", cut
		}
		if indent == "" {
			indent = "  "
		}
		w.text.WriteString(mark + "\n")
		for line := range strings.SplitSeq(lines, "\n") {
			if line != "" {
				line = indent + line
			}
			w.text.WriteString(line + "\n")
		}
		return nil
	}
	text, err := scalar(token)
	if err != nil {
		return err
	}
	w.text.WriteString(text + "\n")
	return nil
}

// isBlock reports whether a text of several lines survives as a block scalar.
func isBlock(text string) bool {
	if !strings.Contains(text, "\n") || strings.HasSuffix(text, "\n\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != strings.TrimRight(line, " ") || strings.ContainsFunc(line, func(r rune) bool {
			return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == utf8.RuneError
		}) {
			return false
		}
	}
	return true
}

// plainYAML matches names that need no quotes.
var plainYAML = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_-]*$`)

// reservedYAML are words that YAML does not read as text.
var reservedYAML = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

func yamlName(token json.Token) (string, error) {
	name, _ := token.(string)
	if plainYAML.MatchString(name) && !slices.Contains(reservedYAML, strings.ToLower(name)) {
		return name, nil
	}
	return scalar(token)
}

func (w *yamlWriter) members(indent string, inline bool) error {
	first := true
	for ; w.dec.More(); first = false {
		token, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, err := yamlName(token)
		if err != nil {
			return err
		}
		switch {
		case first && !inline:
			w.text.WriteString("\n" + indent)
		case !first:
			w.text.WriteString(indent)
		}
		fmt.Fprintf(&w.text, "%s:", name)
		if err := w.value(indent+"  ", false); err != nil {
			return err
		}
	}
	return w.end(first, "{}")
}

func (w *yamlWriter) items(indent string) error {
	first := true
	for ; w.dec.More(); first = false {
		if first {
			w.text.WriteString("\n")
		}
		w.text.WriteString(indent + "- ")
		if err := w.value(indent+"  ", true); err != nil {
			return err
		}
	}
	return w.end(first, "[]")
}

// end reads the closing bracket, and writes {} or [] for an empty value.
func (w *yamlWriter) end(empty bool, text string) error {
	if empty {
		w.text.WriteString(" " + text + "\n")
	}
	_, err := w.dec.Token()
	return err
}
