package streamstate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/definition"
)

// A Trial is a message on which the processors of a stream are tried, without its inputs
// and outputs.
type Trial struct {
	Stream   string            `json:"stream" doc:"name of the stream"`
	Body     json.RawMessage   `json:"body" doc:"of the message: a string stands for its text, everything else for its JSON"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Calls    bool              `json:"calls,omitempty" doc:"whether http processors call their servers; default: they are skipped, and the message goes on as it was"`
}

// Bounds of trials.
const (
	maxBody      = 1 << 20  // bytes of the message
	maxMeta      = 64       // values of metadata
	maxMetaBytes = 64 << 10 // of these
	maxShown     = 64 << 10 // bytes of one body in the answer
	maxAllShown  = 1 << 20  // bytes of all bodies and metadata together
	maxSteps     = 500      // steps, and messages, in the answer
)

// Problems returns what is wrong with the trial.
func (t *Trial) Problems() (problems definition.Problems) {
	add := func(path, format string, args ...any) {
		problems = append(problems, definition.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if t.Stream == "" {
		add("stream", "is required: the name of the stream")
	}
	if len(t.Body) == 0 {
		add("body", "is required: text in a string, or JSON")
	}
	if n := len(t.Message()); n > maxBody {
		add("body", "has %d bytes; at most %d are possible", n, maxBody)
	}
	if len(t.Metadata) > maxMeta {
		add("metadata", "has %d values; at most %d are possible", len(t.Metadata), maxMeta)
	}
	n := 0
	for name, value := range t.Metadata {
		n += len(name) + len(value)
	}
	if n > maxMetaBytes {
		add("metadata", "has %d bytes; at most %d are possible", n, maxMetaBytes)
	}
	return problems
}

// Message returns the body of the message.
func (t *Trial) Message() []byte {
	var text string
	if body := bytes.TrimSpace(t.Body); len(body) > 0 && body[0] == '"' && json.Unmarshal(body, &text) == nil {
		return []byte(text)
	}
	return t.Body
}

// Tried is what became of a trial.
type Tried struct {
	Steps   []TriedStep    `json:"steps" nullable:"false" doc:"in the order in which they ran, at most 500"`
	Outputs []TriedMessage `json:"outputs" nullable:"false" doc:"messages that would go to the outputs"`
	Dead    []TriedMessage `json:"dead_letters" nullable:"false" doc:"messages that dead_letter processors would send to the dead letter"`
	Reply   *TriedMessage  `json:"reply,omitempty" doc:"the answer for a waiting sender, by sync_response; left out: there is none"`
	Error   string         `json:"error" doc:"with which the message is refused; empty: it is not"`
	Cut     bool           `json:"cut" doc:"whether there was more than is shown"`
}

// A TriedStep is the run of one processor on one message.
type TriedStep struct {
	Path     string `json:"path" doc:"in the stream object, such as pipeline.processors[0]"`
	Label    string `json:"label"`
	Kind     string `json:"kind" doc:"name of the processor"`
	Depth    int    `json:"depth" doc:"how deep it is in branches and cases; 0: in none"`
	Error    string `json:"error" doc:"with which it refused the message; empty: it did not"`
	Filtered bool   `json:"filtered" doc:"whether the message ended here"`
	Skipped  bool   `json:"skipped" doc:"whether it did not run: it is an http processor, and calls were not asked for"`
	TriedMessage
	Seconds float64 `json:"seconds" doc:"that it took"`
}

// A TriedMessage is a message of a trial: of a step, as it is after that.
type TriedMessage struct {
	Body     string            `json:"body" doc:"if it is text, at most 64 KiB"`
	Bytes    []byte            `json:"body_base64,omitempty" doc:"if it is not text"`
	Metadata map[string]string `json:"metadata" nullable:"false"`
	Cut      bool              `json:"cut" doc:"whether the body is longer"`
	Reason   string            `json:"reason,omitempty" doc:"of a dead letter"`
}

// A Shower fills in what a trial came to, within bounds. Bodies and metadata beyond these
// are left out, and Cut is set.
type Shower struct {
	Tried
	left int
}

// NewShower returns a shower of nothing yet.
func NewShower() *Shower {
	return &Shower{Tried: Tried{Steps: []TriedStep{}, Outputs: []TriedMessage{}, Dead: []TriedMessage{}}, left: maxAllShown}
}

// Step adds a step.
func (s *Shower) Step(one *TriedStep) {
	if len(s.Steps) == maxSteps {
		s.Cut = true
		return
	}
	s.Steps = append(s.Steps, *one)
}

// Output adds a message for the outputs.
func (s *Shower) Output(m *TriedMessage) { s.add(&s.Outputs, m) }

// Buried adds a message for the dead letter.
func (s *Shower) Buried(m *TriedMessage) { s.add(&s.Dead, m) }

func (s *Shower) add(to *[]TriedMessage, m *TriedMessage) {
	if len(*to) == maxSteps {
		s.Cut = true
		return
	}
	*to = append(*to, *m)
}

// Message returns a message as it is shown. It keeps metadata.
func (s *Shower) Message(body []byte, metadata map[string]string) *TriedMessage {
	m := &TriedMessage{Metadata: metadata}
	for name, value := range metadata {
		s.left -= len(name) + len(value)
	}
	if s.left < 0 {
		m.Metadata, s.Cut = map[string]string{}, true
	}
	shown := body[:min(len(body), maxShown, max(s.left, 0))]
	if m.Cut = len(shown) < len(body); m.Cut {
		s.Cut = true
	}
	s.left -= len(shown)
	text := shown
	for n := 0; m.Cut && n < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text); n++ {
		text = text[:len(text)-1] // a character that was cut through
	}
	if utf8.Valid(text) {
		m.Body = string(text)
	} else {
		m.Bytes = bytes.Clone(shown)
	}
	return m
}
