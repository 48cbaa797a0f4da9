package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// yamlOf writes JSON as YAML, members in their order. Scalars are written as in
// JSON, which YAML reads alike.
func yamlOf(data []byte) (string, error) {
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

// value writes the next value. inline tells that it stands behind a dash, so that
// its first member goes on the same line.
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
	scalar, err := scalar(token)
	if err != nil {
		return err
	}
	if !inline {
		w.text.WriteString(" ")
	}
	w.text.WriteString(scalar + "\n")
	return nil
}

func (w *yamlWriter) members(indent string, inline bool) error {
	first := true
	for ; w.dec.More(); first = false {
		name, err := w.dec.Token()
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

// end reads the closing bracket, and writes what stands for nothing in between.
func (w *yamlWriter) end(empty bool, text string) error {
	if empty {
		w.text.WriteString(" " + text + "\n")
	}
	_, err := w.dec.Token()
	return err
}
