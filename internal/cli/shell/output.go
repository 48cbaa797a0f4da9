package shell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Rows is data with named columns. Cells are texts, numbers and truth values.
type Rows struct {
	Columns []string
	Cells   [][]any
	Single  bool // one object, not a list of one
}

// Print writes rows in the format of -o.
func (s *Shell) Print(data Rows) error {
	var b bytes.Buffer
	var err error
	switch s.Output {
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
	return s.Write(b.String())
}

// Write writes data to standard output.
func (s *Shell) Write(text string) error {
	if _, err := io.WriteString(s.Stdout, text); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}

// Remark prints a remark, unless --quiet is set.
func (s *Shell) Remark(format string, args ...any) error {
	if s.Quiet {
		return nil
	}
	return s.Write(fmt.Sprintf(format, args...) + "\n")
}

func (r Rows) table(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tab, strings.ToUpper(strings.Join(r.Columns, "\t"))) // Flush returns the error
	for _, row := range r.Cells {
		texts := make([]string, len(row))
		for i, cell := range row {
			texts[i] = fmt.Sprint(cell)
		}
		_, _ = fmt.Fprintln(tab, strings.TrimRight(strings.Join(texts, "\t"), "\t"))
	}
	return tab.Flush()
}

// json writes an array of objects with members in the order of columns.
func (r Rows) json(w *bytes.Buffer) error {
	between, end := "[\n  ", "\n]\n"
	switch {
	case r.Single:
		between, end = "", "\n"
	case len(r.Cells) == 0:
		end = "[]\n"
	}
	for _, row := range r.Cells {
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

func (r Rows) members(w *bytes.Buffer, row []any) error {
	for i, cell := range row {
		if i > 0 {
			w.WriteString(", ")
		}
		text, err := scalar(cell)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%q: %s", r.Columns[i], text)
	}
	return nil
}

// yaml writes a list of mappings. Scalars are written as in JSON, which YAML
// reads alike.
func (r Rows) yaml(w *bytes.Buffer) error {
	first, further := "- ", "  "
	switch {
	case r.Single:
		first, further = "", ""
	case len(r.Cells) == 0:
		w.WriteString("[]\n")
	}
	for _, row := range r.Cells {
		for i, cell := range row {
			text, err := scalar(cell)
			if err != nil {
				return err
			}
			lead := further
			if i == 0 {
				lead = first
			}
			fmt.Fprintf(w, "%s%s: %s\n", lead, r.Columns[i], text)
		}
	}
	return nil
}

// scalar encodes one value as JSON, without HTML escapes.
func scalar(cell any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(cell)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Show prints a response: as received with -o json or yaml, otherwise as table prints it.
func (s *Shell) Show(answer []byte, table func() error) error {
	switch s.Output {
	case "json":
		var b bytes.Buffer
		if err := json.Indent(&b, answer, "", "  "); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return s.Write(strings.TrimSuffix(b.String(), "\n") + "\n")
	case "yaml":
		text, err := YAML(answer)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return s.Write(text)
	}
	return table()
}

// ShowWhole prints a whole response, as YAML unless -o json is set.
func (s *Shell) ShowWhole(answer []byte) error {
	return s.Show(answer, func() error {
		text, err := YAML(answer)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return s.Write(text)
	})
}

// Plural returns "1 file", "2 files".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Color colours a text red on a terminal.
func (s *Shell) Color(text string) string {
	if s.NoColor || s.Variable("NO_COLOR") != "" || !IsTerminal(s.Stderr) {
		return text
	}
	return "\x1b[31m" + text + "\x1b[0m"
}
