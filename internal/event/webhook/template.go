package webhook

import (
	"bytes"
	"fmt"
	"text/template"
	"time"

	"github.com/sluicegate/sluice/internal/event"
)

// maxBody is the longest message that is sent, in bytes.
const maxBody = 64 << 10

// A Template makes messages of events. It never changes.
type Template struct{ parsed *template.Template }

// ParseTemplate reads a template in the form of text/template. It may use .Type,
// the event's name, .TimeStamp, in RFC 3339, and .Meta.Name for the
// members of the event. What could take long or much memory is refused: the owner of an API
// must not hold up the events of the others.
func ParseTemplate(name, text string) (*Template, error) {
	parsed, err := template.New(name).Option("missingkey=zero").Funcs(functions).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	if parsed.Tree != nil {
		if err := new(judge).list(parsed.Root); err != nil {
			return nil, fmt.Errorf("reading a template: %w", err)
		}
	}
	t := &Template{parsed}
	if _, err := t.render(&event.Event{Name: event.QuotaExceeded}, true); err != nil {
		return nil, err
	}
	return t, nil
}

// data is what a template sees.
type data struct {
	Type      string
	TimeStamp string
	Meta      map[string]string
}

// render makes the message of an event. In one that is JSON, values are written
// so that they can stand between quotes and nowhere end them.
func (t *Template) render(e *event.Event, isJSON bool) ([]byte, error) {
	meta := make(map[string]string)
	for _, m := range membersOf(e) {
		if m.inTemplate != "" {
			meta[m.inTemplate] = within(m.value, isJSON)
		}
	}
	out := &bounded{}
	d := data{Type: string(e.Name), TimeStamp: e.At.UTC().Format(time.RFC3339), Meta: meta}
	if err := t.parsed.Execute(out, d); err != nil {
		return nil, fmt.Errorf("filling in a template: %w", err)
	}
	return out.Bytes(), nil
}

func within(value string, isJSON bool) string {
	if !isJSON {
		return value
	}
	text := quoted(value)
	return string(text[1 : len(text)-1])
}

// bounded takes as much as a message may have.
type bounded struct{ bytes.Buffer }

// Write adds b, or fails when the message gets too long.
func (w *bounded) Write(b []byte) (int, error) {
	if w.Len()+len(b) > maxBody {
		return 0, errLong
	}
	return w.Buffer.Write(b)
}
