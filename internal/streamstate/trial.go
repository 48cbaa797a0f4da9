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
	// Name of the stream.
	Stream string `json:"stream"`
	// Body of the message: a string stands for its text, everything else for its JSON; at most 1 MiB.
	// Example: {"order": 7}
	Body json.RawMessage `json:"body"`
	// Metadata of the message, at most 64 values. Default: none.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Whether http processors call their servers; otherwise they are skipped, and the message goes on
	// as it was.
	Calls bool `json:"calls,omitempty"`
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
	// Processors in the order in which they ran, at most 500.
	Steps []TriedStep `json:"steps" nullable:"false"`
	// Messages that would go to the outputs.
	Outputs []TriedMessage `json:"outputs" nullable:"false"`
	// Messages that dead_letter processors would send to the dead letter.
	Dead []TriedMessage `json:"dead_letters" nullable:"false"`
	// Answer for a waiting sender, by sync_response; left out: there is none.
	Reply *TriedMessage `json:"reply,omitempty"`
	// Error with which the message is refused; empty: it is not.
	Error string `json:"error"`
	// Whether there was more than is shown.
	Cut bool `json:"cut"`
}

// A TriedStep is the run of one processor on one message.
type TriedStep struct {
	// Path in the stream object, such as pipeline.processors[0].
	Path string `json:"path"`
	// Label that the configuration gives the processor; empty: none.
	Label string `json:"label"`
	// Name of the processor.
	Kind string `json:"kind"`
	// Number of branches and cases that it is inside of; 0: in none.
	Depth int `json:"depth"`
	// Error with which it refused the message; empty: it did not.
	Error string `json:"error"`
	// Whether the message ended here.
	Filtered bool `json:"filtered"`
	// Whether it did not run: it is an http processor, and calls were not asked for.
	Skipped bool `json:"skipped"`
	TriedMessage
	// Time that it took, in seconds.
	Seconds float64 `json:"seconds"`
}

// A TriedMessage is a message of a trial: of a step, as it is after that.
type TriedMessage struct {
	// Body of the message if it is text, at most 64 KiB; of a step, as it is after that.
	Body string `json:"body"`
	// Body of the message in base64 if it is not text.
	Bytes []byte `json:"body_base64,omitempty"`
	// Metadata of the message.
	Metadata map[string]string `json:"metadata" nullable:"false"`
	// Whether the body is longer.
	Cut bool `json:"cut"`
	// Reason of a dead letter; left out for others.
	Reason string `json:"reason,omitempty"`
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
