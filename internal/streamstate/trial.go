package streamstate

import "encoding/json"

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
	MaxTried     = 1 << 20  // bytes of the message
	MaxShown     = 64 << 10 // bytes of one body in the answer
	MaxAllShown  = 1 << 20  // bytes of all bodies and metadata together
	MaxSteps     = 500      // steps in the answer
	MaxTriedMeta = 64       // values of metadata
)

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
