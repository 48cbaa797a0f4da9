package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// rows is data with named columns. Cells are texts, numbers and truth values.
type rows struct {
	columns []string
	cells   [][]any
	single  bool // one object, not a list of one
}

// print writes rows in the form that was asked for with -o.
func (s *session) print(data rows) error {
	var b bytes.Buffer
	var err error
	switch s.output {
	case "json":
		err = data.json(&b)
	case "yaml":
		err = data.yaml(&b)
	default:
		err = data.table(&b)
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return s.write(b.String())
}

// write writes data to standard output.
func (s *session) write(text string) error {
	if _, err := io.WriteString(s.process.Stdout, text); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}

// remark tells a person what went well.
func (s *session) remark(format string, args ...any) error {
	if s.quiet {
		return nil
	}
	return s.write(fmt.Sprintf(format, args...) + "\n")
}

func (r rows) table(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tab, strings.ToUpper(strings.Join(r.columns, "\t"))) // Flush returns errors
	for _, row := range r.cells {
		texts := make([]string, len(row))
		for i, cell := range row {
			texts[i] = fmt.Sprint(cell)
		}
		_, _ = fmt.Fprintln(tab, strings.TrimRight(strings.Join(texts, "\t"), "\t"))
	}
	return tab.Flush()
}

// json writes an array of objects with members in the order of columns.
func (r rows) json(w *bytes.Buffer) error {
	between, end := "[\n  ", "\n]\n"
	switch {
	case r.single:
		between, end = "", "\n"
	case len(r.cells) == 0:
		end = "[]\n"
	}
	for _, row := range r.cells {
		w.WriteString(between + "{")
		between = ",\n  "
		if err := r.members(w, row); err != nil {
			return err
		}
		w.WriteString("}")
	}
	w.WriteString(end)
	return nil
}

func (r rows) members(w *bytes.Buffer, row []any) error {
	for i, cell := range row {
		if i > 0 {
			w.WriteString(", ")
		}
		text, err := scalar(cell)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%q: %s", r.columns[i], text)
	}
	return nil
}

// yaml writes a list of mappings. Scalars are written as in JSON, which YAML
// reads alike.
func (r rows) yaml(w *bytes.Buffer) error {
	first, further := "- ", "  "
	switch {
	case r.single:
		first, further = "", ""
	case len(r.cells) == 0:
		w.WriteString("[]\n")
	}
	for _, row := range r.cells {
		for i, cell := range row {
			text, err := scalar(cell)
			if err != nil {
				return err
			}
			lead := further
			if i == 0 {
				lead = first
			}
			fmt.Fprintf(w, "%s%s: %s\n", lead, r.columns[i], text)
		}
	}
	return nil
}

// scalar encodes one cell as JSON, without the escapes that are for HTML only.
func scalar(cell any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(cell)
	return strings.TrimSuffix(b.String(), "\n"), err
}
